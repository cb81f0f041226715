"""Reflectors, informers and the indexed cache that controllers read."""
