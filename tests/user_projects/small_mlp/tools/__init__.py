"""The user's own tools package."""
