"""Subresources: scale, eviction, binding, log."""
