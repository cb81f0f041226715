"""The versioned store: an append-only log in SQLite or in memory, and watches on it."""
