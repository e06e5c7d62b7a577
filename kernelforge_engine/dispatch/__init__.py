"""Guarded dispatch below Python: guard words, the C++ shim, and the runtime of a cast."""
