"""The tool server over streamable HTTP: who may reach it, and how it ends."""

import hmac
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from ipaddress import ip_address

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption
from kernelforge_engine.exchanges import Settings
from kernelforge_server.app import build_server, prepare
from kernelforge_server.ending import GRACE_SECONDS, Requests, Server

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LEAST_TOKEN_BYTES = 32
MAX_BODY_BYTES = 4 << 20
MAX_SESSIONS = 64
MAX_CONNECTIONS = 256
KEEP_ALIVE_SECONDS = 300  # agents think between two calls

Build = Callable[[AbstractAsyncContextManager[Engine]], MCPServer[Engine]]


@dataclass(frozen=True, kw_only=True)
class Door:
    """Where the server listens and whom it lets in.

    Attributes:
        host: an address of this machine.
        port: 0 takes any that is free.
        names: the hosts, without a port, that a request may name.
        token: what a request must carry as a bearer token, empty for none.
    """

    host: str
    port: int
    names: tuple[str, ...]
    token: str

    @property
    def security(self) -> TransportSecuritySettings:
        """The Host and Origin headers that are let through: a page of another site that reaches
        this port through a name of its own is not."""
        origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in self.names]
        return TransportSecuritySettings(
            allowed_hosts=[*self.names, *(f"{name}:*" for name in self.names)],
            allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
        )


def door(host: str, port: int, names: Sequence[str], token: str) -> Door:
    """A door that lets in this machine alone, or whoever knows the token.

    Raises:
        BadOption: it would let in anybody.
    """
    if token and len(token.encode()) < LEAST_TOKEN_BYTES:
        raise BadOption(
            field="KERNELFORGE_TOKEN",
            value="(not shown)",
            why=f"it is shorter than {LEAST_TOKEN_BYTES} bytes",
            accepted="one such as `openssl rand -hex 32` prints",
        )
    if _is_loopback(host):
        return Door(host=host, port=port, names=(*LOOPBACK, *names), token=token)
    if not token:
        raise BadOption(
            field="host",
            value=host,
            why="whoever reaches it could run code here, and no token is set",
            accepted="127.0.0.1, or this address with KERNELFORGE_TOKEN set",
        )
    if not names:
        raise BadOption(
            field="host",
            value=host,
            why="it is not known by which names clients call this machine",
            accepted="this address with --allowed-host NAME for each of them",
        )
    return Door(host=host, port=port, names=tuple(names), token=token)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def serve_http(
    settings: Settings, door: Door, ready: Callable[[str], None], build: Build = build_server
) -> None:
    """Serve what `build` makes of the engine until a signal ends this process; `ready` hears the
    address once it is bound.

    Raises:
        BadOption, StoreUnavailable, SchemaTooNew
        KeyboardInterrupt: the signal was that of Ctrl-C.
    """
    prepare(settings)
    with _bound(door) as listener:
        ended_by = anyio.run(
            _serve, settings, door, listener, ready, build,
            backend_options={"use_uvloop": sys.platform != "win32"},
        )  # fmt: skip
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt


async def _serve(
    settings: Settings,
    door: Door,
    listener: socket.socket,
    ready: Callable[[str], None],
    build: Build,
) -> int | None:
    """Serve, and return the number of the signal that ended it."""
    async with Engine.open(settings) as engine, anyio.create_task_group() as group:
        requests = Requests(
            build(nullcontext(engine)).streamable_http_app(
                streamable_http_path=PATH,
                transport_security=door.security,
                max_request_body_size=MAX_BODY_BYTES,
                max_sessions=MAX_SESSIONS,
            )
        )
        config = uvicorn.Config(
            _Guarded(requests, door.token) if door.token else requests,
            log_level="warning",
            log_config=None,  # its own handlers would write past the redaction
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = Server(config)
        await group.start(server.end_on_a_signal, engine.jobs, requests)
        ready(f"http://{_shown(door.host)}:{listener.getsockname()[1]}{PATH}")
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()
    return server.ended_by


def _bound(door: Door) -> socket.socket:
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    try:
        return socket.create_server((door.host, door.port), family=family)
    except OSError as error:
        raise BadOption(
            field="port",
            value=door.port,
            why=f"it cannot be listened on at {door.host}: {error.strerror}",
            accepted="another port, or 0 for any that is free",
        ) from error


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Guarded:
    """An application behind a bearer token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it carries the token."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(given.encode(), self._expected):
                refusal = PlainTextResponse(
                    "A bearer token is needed. Next: send the header Authorization: Bearer TOKEN.",
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
