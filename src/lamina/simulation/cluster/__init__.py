"""An in-memory API server: a dict of objects with the semantics of the real verbs."""
