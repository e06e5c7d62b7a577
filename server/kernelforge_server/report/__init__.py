"""The report of a project that people read: one page, and the same as Markdown and JSON."""
