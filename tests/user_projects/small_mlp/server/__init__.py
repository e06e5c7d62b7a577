"""The user's own server package."""

WIDTH = 64
HIDDEN = 256
