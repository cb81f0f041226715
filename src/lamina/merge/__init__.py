"""Patches and server-side apply: the resulting object, and its managed fields."""
