"""Our own agent: it knows the server by MCP only and imports nothing of it."""
