"""A kopf operator, tested on a cluster that exists for one test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina.testing import SyncCluster
from lamina.testing.builders import custom, definition

OPERATOR = Path(__file__).with_name("greeter.py")


@contextmanager
def running(operator: Path, kubeconfig: Path) -> Iterator[None]:
    """Run an operator in a process of its own, as its users do, so that everything it leaves open is closed with it."""
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--standalone", str(operator)]
    with subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.mark.lamina(simulate="off")
def test_a_greeting_says_hello(blocking_cluster: SyncCluster) -> None:
    blocking_cluster.given(definition("Greeting"))

    with running(OPERATOR, blocking_cluster.kubeconfig):
        greeting = blocking_cluster.given(
            custom("example.com/v1", "Greeting", "world", spec={"name": "world"})
        )
        greeted = blocking_cluster.eventually(greeting, lambda seen: "said" in (seen.get("status") or {}))

    assert greeted["status"]["said"] == "hello world"
