"""A client of the Kubernetes API."""
