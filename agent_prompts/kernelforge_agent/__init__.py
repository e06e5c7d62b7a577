"""The agent loop of Kernel Forge; it talks to the server over MCP and imports nothing of it."""
