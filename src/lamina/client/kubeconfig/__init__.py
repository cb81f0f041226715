"""Kubeconfig files: reading, writing and credentials."""
