"""A file without make_model()."""
