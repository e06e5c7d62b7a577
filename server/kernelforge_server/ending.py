"""How a server over HTTP ends: its jobs, then the calls that wait for them, then its streams."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelforge_engine.jobs import JobRunner

ANSWER_SECONDS = 3
GRACE_SECONDS = 5
LISTEN = "subscriptions/listen"  # the one request that waits for no answer


class Requests:
    """An application that knows its open requests: calls, which come to an end by themselves, and
    streams, which last as long as the client and the server do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._calls = app, 0
        self._answered, self._over = anyio.Event(), anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] == "POST" and Headers(scope=scope).get("mcp-method") != LISTEN:
            self._calls += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._calls -= 1
                self._answered.set()
        else:
            await self._stream(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that is told at the end that its client is gone, and whose response is then
        completed: the SDK leaves it as it is when a client goes."""
        open_response = False

        async def sending(message: Message) -> None:
            nonlocal open_response
            open_response = message.get("more_body", message["type"] == "http.response.start")
            await send(message)

        async def receiving() -> Message:
            message: Message = {"type": "http.disconnect"}

            async def end() -> None:
                await self._over.wait()
                group.cancel_scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(end)
                message = await receive()
                group.cancel_scope.cancel()
            return message

        await self._app(scope, receiving, sending)
        if open_response:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def end(self) -> None:
        """Wait for the calls to be answered, but not for ever, and end the streams."""
        with anyio.move_on_after(ANSWER_SECONDS):
            while self._calls:
                self._answered = anyio.Event()
                await self._answered.wait()
        self._over.set()


class Server(uvicorn.Server):
    """A server that interrupts its jobs first, which answers whoever waits for one. Left to itself,
    uvicorn would let the signal end the process while the engine is still open."""

    ended_by: int | None = None
    """The signal it ended for."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `end_on_a_signal`."""
        yield

    async def end_on_a_signal(
        self,
        jobs: JobRunner,
        requests: Requests,
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        """Wait for a signal and end for it."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for number in signals:
                self.ended_by = number
                break
            await jobs.stop()
            self.should_exit = True
            await requests.end()
            await anyio.sleep_forever()  # with the receiver: the process ends when all is closed
