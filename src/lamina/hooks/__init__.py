"""Hooks in Python: the SDK that a hooks file imports, and the processes that run it."""
