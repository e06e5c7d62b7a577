"""The docstring of an error is what people and agents read."""

from kernelforge_engine import errors


def _all(kind: type[errors.KernelForgeError]) -> list[type[errors.KernelForgeError]]:
    return [kind, *[deeper for sub in kind.__subclasses__() for deeper in _all(sub)]]


def test_every_error_says_what_to_do_next():
    silent = [e.__name__ for e in _all(errors.KernelForgeError) if "Next:" not in (e.__doc__ or "")]
    assert silent == []


def test_exit_codes_are_those_of_the_command_line():
    assert {e.exit_code for e in _all(errors.KernelForgeError)} <= {1, 2, 3}
