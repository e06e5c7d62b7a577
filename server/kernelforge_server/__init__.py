"""The outermost layer of Kernel Forge: the MCP server and the command line."""
