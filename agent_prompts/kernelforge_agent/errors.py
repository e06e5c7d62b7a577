"""Why an agent's run could not go on.

The docstring of a class is its message and ends with the step that mends it; `{fields}` are filled
from the keyword arguments of the raise.
"""

import inspect


class AgentError(Exception):
    """The agent could not go on. Next: read the last lines of its transcript."""

    exit_code = 1

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(" ".join(inspect.cleandoc(self.__doc__ or "").format(**fields).split()))


class NotPossible(AgentError):
    """The agent cannot do that: {why}. Next: {step}."""

    exit_code = 2


class UnknownSession(NotPossible):
    """There is no session {session!r}: this project has {known}. Next: name one of those, or see
    `kernelforge agent list`."""


class NoSessions(NotPossible):
    """In this project no agent was run. Next: begin with `kernelforge agent run MODEL`."""


class KeyMissing(NotPossible):
    """There is no key for {model}. Next: set {variable} to one."""


class ExtraMissing(NotPossible):
    """Models of Anthropic need the package `anthropic`, which is not installed. Next:
    pip install 'kernelforge-mcp[agent]'."""


class ModelFailed(AgentError):
    """{model} did not answer: {why}. Next: mend what it names, then `kernelforge agent resume`."""

    exit_code = 5


class KeyRefused(ModelFailed):
    """The key for {model} was refused: {why}. Next: set {variable} to a key that may use this
    model, then `kernelforge agent resume`."""


class Overloaded(ModelFailed):
    """{model} takes no requests now: {why}. Next: `kernelforge agent resume` later."""

    def __init__(self, *, retry_after: float | None = None, **fields: object) -> None:
        super().__init__(**fields)
        self.retry_after = retry_after


class StreamCut(ModelFailed):
    """The answer of {model} broke off: {why}. Next: `kernelforge agent resume`."""


class ServerFailed(AgentError):
    """The tool server is not there: {why}. Next: {step}."""

    exit_code = 6
