"""Isolation of the processes that meet a candidate: resource limits, Landlock, seccomp and network.

Everything is applied through the C library, without a helper program, a daemon or a binding.
"""
