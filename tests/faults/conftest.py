"""A server under test, the embedded one or a real one, and a namespace on it."""

from tests.bed.fixtures import api, namespace, server

__all__ = ["api", "namespace", "server"]
