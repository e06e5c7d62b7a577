"""The Runner: a disposable process without torch that executes one candidate on a shared arena.

It holds no reference, seed, tolerance or verdict; what it says is only that it has finished.
"""
