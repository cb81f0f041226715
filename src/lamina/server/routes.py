"""Paths to targets, as the server reads them."""

from lamina.objects.routes import Path, take_apart

__all__ = ["Path", "take_apart"]
