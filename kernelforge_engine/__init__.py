"""The deterministic engine of Kernel Forge: it captures, builds, judges, times, searches, packs."""

__version__ = "0.1.0"
