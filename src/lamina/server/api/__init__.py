"""The API server: requests are authenticated, authorized and dispatched to verbs."""
