"""What works on a server is tried on each that can be had, and by every way to it."""

from tests.client.reach import client, namespace, pytest_generate_tests, ways

__all__ = ["client", "namespace", "pytest_generate_tests", "ways"]
