"""
A Deployment of 1,000 pods, from its creation until all of them are available.

Both servers have the same nodes, scheduler and stages: the embedded one in its own
process, the real one next to its controller manager, which keeps its default rate
limit.
"""

import shutil
import tempfile
import time
from pathlib import Path

from bench.usage import processor_seconds
from tests.bed.embedded import embedded_server
from tests.bed.real import real_server
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError
from tests.bed.wire import Api

PODS = 1_000
TIMEOUT = 300.0

_DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments"


def roll_out(which: Which, *, pods: int = PODS) -> dict[str, float]:
    """Return the time that a new server takes, and the processor time of all of its processes."""
    data = Path(tempfile.mkdtemp(prefix="lamina-bench-"))
    try:
        with real_server(pods=True) if which == "real" else embedded_server(data=data, pods=True) as server:
            return _measured(server, pods)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _measured(server: Server, pods: int) -> dict[str, float]:
    # The work of a server after its start is not part of the measurement.
    time.sleep(2.0)
    api = server.api()
    used = processor_seconds(server.pids)
    started = time.monotonic()
    made = api.post(_DEPLOYMENT, _deployment("web", pods))
    if made.code != 201:
        raise BedError(f"the {server.name} server did not create a Deployment: {made.text}")
    while _available(api) != pods:
        if time.monotonic() - started > TIMEOUT:
            raise BedError(
                f"{pods} pods were not available on the {server.name} server within {TIMEOUT:.0f} s"
            )
        time.sleep(0.1)
    return {
        "seconds": time.monotonic() - started,
        "cpu_seconds": processor_seconds(server.pids) - used,
    }


def _available(api: Api) -> int:
    return int(api.get(f"{_DEPLOYMENT}/web").json.get("status", {}).get("availableReplicas", 0))


def _deployment(name: str, pods: int) -> dict[str, object]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
    }
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
