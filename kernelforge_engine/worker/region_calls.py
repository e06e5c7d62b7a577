"""Calls of plain Python functions, as this thread makes them, for as little as Python allows.

Since 3.12 sys.monitoring lets code that is of no interest run at full speed. Before, the profile
function is called for everything, so it is taken away while operators and hooks are at work.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

DISPATCH = "__torch_dispatch__"
TOOL = 4  # one of the numbers of sys.monitoring that no kind of tool reserves

Begun = Callable[[FrameType], bool]
Ended = Callable[[FrameType, Any], None]


if sys.version_info >= (3, 12):

    class Calls:
        """Tells `begun(frame)`, which says whether that code is of interest, and `ended`."""

        def __init__(self, begun: Begun, ended: Ended) -> None:
            self._begun, self._ended = begun, ended
            self._thread = 0
            self._dull: dict[int, CodeType] = {}

        @contextmanager
        def followed(self, *, pausing: bool) -> Iterator[None]:  # noqa: ARG002  nothing to pause
            """Follow this thread inside."""
            self._thread = threading.get_ident()
            tool, events = sys.monitoring, sys.monitoring.events
            tool.use_tool_id(TOOL, __name__)
            tool.register_callback(TOOL, events.PY_START, self._start)
            tool.register_callback(TOOL, events.PY_RETURN, self._return)
            tool.set_events(TOOL, events.PY_START | events.PY_RETURN)
            tool.restart_events()
            try:
                yield
            finally:
                tool.set_events(TOOL, 0)
                tool.register_callback(TOOL, events.PY_START, None)
                tool.register_callback(TOOL, events.PY_RETURN, None)
                tool.free_tool_id(TOOL)

        def resume(self) -> None:
            """An operator has run."""

        def aside(self, told: Callable[..., None], *what: Any) -> None:
            """Call something that need not be followed."""
            told(*what)

        def _start(self, code: CodeType, _offset: int) -> Any:
            if threading.get_ident() != self._thread:
                return None
            if self._begun(sys._getframe(1)):
                return None
            self._dull[id(code)] = code
            return sys.monitoring.DISABLE

        def _return(self, code: CodeType, _offset: int, value: Any) -> Any:
            if id(code) in self._dull:
                return sys.monitoring.DISABLE
            if threading.get_ident() == self._thread:
                self._ended(sys._getframe(1), value)
            return None

else:

    class Calls:
        """Tells `begun(frame)`, which says whether that code is of interest, and `ended`."""

        def __init__(self, begun: Begun, ended: Ended) -> None:
            self._begun, self._ended = begun, ended
            self._paused = self._pausing = False

        @contextmanager
        def followed(self, *, pausing: bool) -> Iterator[None]:
            """Follow this thread inside, if `pausing` not within operators, until resume()."""
            self._pausing = pausing
            before = sys.getprofile()
            sys.setprofile(self._event)
            try:
                yield
            finally:
                sys.setprofile(before)
                self._paused = False

        def resume(self) -> None:
            """An operator has run, whose own Python code was not followed."""
            if self._paused:
                self._paused = False
                sys.setprofile(self._event)

        def aside(self, told: Callable[..., None], *what: Any) -> None:
            """Call something that need not be followed."""
            sys.setprofile(None)
            try:
                told(*what)
            finally:
                self._paused = False
                sys.setprofile(self._event)

        def _event(self, frame: FrameType, event: str, value: Any) -> None:
            if event == "call":
                known = self._begun(frame)
                if self._pausing and not known and frame.f_code.co_name == DISPATCH:
                    self._paused = True  # what runs inside an operator is no region
                    sys.setprofile(None)
            elif event == "return":
                self._ended(frame, value)
