"""Validating admission webhooks: who is asked about a write, how, and what comes of the answer."""
