"""The MCP tools of Kernel Forge: one file per tool, one registry, one place for error texts."""
