"""What the checks share: a server, a namespace of their own, and the Widget kind."""

import json

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.fixtures import api, chosen_server, kubectl, namespace
from tests.bed.fixtures import server_with_pods as server
from tests.bed.kubectl import Kubectl, kubectl_command
from tests.bed.scenarios import is_due, marked
from tests.bed.server import Server
from tests.conformance.checks.objects import GROUP, widget_definition

__all__ = ["api", "kubectl", "namespace", "server"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out checks that are open on the selected server."""
    which = chosen_server()
    left_out = [item for item in items if (found := marked(item)) and not is_due(found[0], which)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def configmaps(namespace: str) -> str:
    """The path of the ConfigMaps in the test's namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture(scope="session")
def widget_kind(server: Server) -> str:
    """The Widget kind, defined once per session with kubectl; returns kubectl's output."""
    admin = Kubectl(kubectl_command(), server.kubeconfig)
    said = admin("apply", "-f", "-", given=json.dumps(widget_definition()))
    said += admin("wait", "--for=condition=Established", f"crd/widgets.{GROUP}", "--timeout=120s")
    # On a real server Established is true a little before it serves the kind.
    eventually_sync(
        lambda: server.api().get(f"/apis/{GROUP}/v1/namespaces/default/widgets").code,
        lambda found: found == 200,
    )
    return said


@pytest.fixture
def widgets(widget_kind: str, namespace: str) -> str:
    """The path of the Widgets in the test's namespace."""
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/widgets"
