"""Revisions, their history, and how targets move from one to the next."""
