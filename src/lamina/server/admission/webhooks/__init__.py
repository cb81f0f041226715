"""Validating admission webhooks: registry, matching, calls and responses."""
