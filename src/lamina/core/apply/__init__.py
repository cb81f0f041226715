"""Desired state against live state: what to create, update, replace and delete."""
