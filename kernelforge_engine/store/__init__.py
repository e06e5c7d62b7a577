"""The project folder: forge.db (SQLite) and the content-addressed blobs/ and artifacts/."""
