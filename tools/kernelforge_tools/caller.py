"""Who is calling, as clients introduce themselves."""

from mcp.server.mcpserver import Context

from kernelforge_engine import limits
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption

MAX_CHARS = 60
CALL_KEY = "io.github.kernelforge/key"


def caller(ctx: Context[Engine]) -> str:
    """The client's name, for the author of a node and the holder of a lease."""
    client = ctx.request_context.session.client_params
    return client.client_info.name[:MAX_CHARS] if client else "unknown"


def call_key(ctx: Context[Engine]) -> str | None:
    """The client's own key for this call, which comes beside the arguments, in `_meta`: made again
    with the same key, it comes to what it came to before. Clients of other names have other keys.

    Raises:
        BadOption: it is no key.
    """
    key = (ctx.request_context.meta or {}).get(CALL_KEY)
    if key is None:
        return None
    if not isinstance(key, str) or not key:
        why, accepted = "it is no text", "a text of the client's own"
        raise BadOption(field=CALL_KEY, value=key, why=why, accepted=accepted)
    limits.text(CALL_KEY, key, limits.NAME)
    return f"{caller(ctx)}: {key}"
