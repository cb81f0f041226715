"""Calls to webhooks: HTTP requests, retries and cached responses."""
