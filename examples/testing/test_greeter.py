"""A kopf operator, tested on a cluster that is there in a moment and gone with the test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina.testing import BlockingCluster
from lamina.testing.builders import custom, definition

OPERATOR = Path(__file__).with_name("greeter.py")


@contextmanager
def running(operator: Path, kubeconfig: Path) -> Iterator[None]:
    """Run an operator as its users do, in a process of its own: whatever it leaves open goes with it."""
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--standalone", str(operator)]
    with subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.mark.lamina(simulate="off")
def test_a_greeting_says_hello(blocking_cluster: BlockingCluster) -> None:
    blocking_cluster.given(definition("Greeting"))

    with running(OPERATOR, blocking_cluster.kubeconfig):
        greeting = blocking_cluster.given(
            custom("example.com/v1", "Greeting", "world", spec={"name": "world"})
        )
        greeted = blocking_cluster.until(greeting, lambda seen: "said" in (seen.get("status") or {}))

    assert greeted["status"]["said"] == "hello world"
