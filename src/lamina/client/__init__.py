"""The Kubernetes API, spoken to whoever serves it."""
