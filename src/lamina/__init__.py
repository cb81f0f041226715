"""A control plane for change on Kubernetes."""

__version__ = "0.1.0"
