"""A kopf operator, tested on a cluster that is there in a moment and gone with the test."""

from pathlib import Path

import pytest
from kopf.testing import KopfRunner

from lamina.testing import BlockingCluster
from lamina.testing.builders import custom, definition

OPERATOR = Path(__file__).with_name("greeter.py")


@pytest.mark.lamina(simulate="off")
def test_a_greeting_says_hello(blocking_cluster: BlockingCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(blocking_cluster.kubeconfig))
    blocking_cluster.given(definition("Greeting"))

    with KopfRunner(["run", "--all-namespaces", "--standalone", str(OPERATOR)], timeout=60):
        greeting = blocking_cluster.given(
            custom("example.com/v1", "Greeting", "world", spec={"name": "world"})
        )
        greeted = blocking_cluster.until(greeting, lambda seen: "said" in (seen.get("status") or {}))

    assert greeted["status"]["said"] == "hello world"
