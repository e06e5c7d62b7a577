"""Who is calling, as clients introduce themselves."""

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine

MAX_CHARS = 60


def caller(ctx: Context[Engine]) -> str:
    """The client's name, for the author of a node and the holder of a lease."""
    client = ctx.request_context.session.client_params
    return client.client_info.name[:MAX_CHARS] if client else "unknown"
