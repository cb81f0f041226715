"""One test suite for every way to reach a server."""

from tests.client.reach import client, namespace, pytest_generate_tests, ways

__all__ = ["client", "namespace", "pytest_generate_tests", "ways"]
