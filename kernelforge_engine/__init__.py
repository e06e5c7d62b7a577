"""The deterministic engine of Kernel Forge: it captures, builds, judges, times, searches, packs."""
