"""The command line: one small module per command, all over the same engine."""
