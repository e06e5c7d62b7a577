"""Every way in to a model and to its inputs: user code, saved files, Hugging Face, data files."""
