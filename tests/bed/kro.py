"""Runs kro's own controller on a server, to be recorded and measured beside ours."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

from tests.bed.build import KRO, built
from tests.bed.go import go_command, go_environment
from tests.bed.processes import free_ports, start, until
from tests.bed.server import Server
from tests.bed.trouble import BedError
from tests.bed.wire import Api

WORKERS = 16
"""As many as it needs to be faster than as shipped, where it has one."""
_LIMITLESS = 100_000
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def kro_module() -> Path:
    """Return the folder of kro's Go module, with its examples and its definitions."""
    return module_folder(f"github.com/kubernetes-sigs/kro@v{KRO.version}")


def module_folder(version: str) -> Path:
    """Return the folder of a Go module, downloaded if it is not there."""
    told = subprocess.run(
        [go_command(), "mod", "download", "-json", version],
        cwd=KRO.module,
        env=go_environment(),
        stdout=subprocess.PIPE,
        check=False,
    )
    where = json.loads(told.stdout or "{}").get("Dir")
    if not where:
        raise BedError(f"the Go module {version} cannot be had")
    return Path(where)


@contextmanager
def kro(server: Server) -> Iterator[int]:
    """Run kro's controller until the end of the block, without client rate limits, and yield its process id."""
    api = server.api()
    for file in sorted((kro_module() / "helm" / "crds").glob("*.yaml")):
        _defined(api, yaml.safe_load(file.read_text()))
    metrics, probes = free_ports(2)
    command: list[str | Path] = [
        built(KRO),
        f"--kubeconfig={server.kubeconfig}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
        f"--client-qps={_LIMITLESS}",
        f"--client-burst={_LIMITLESS}",
        f"--dynamic-controller-rate-limiter-rate-limit={_LIMITLESS}",
        f"--dynamic-controller-rate-limiter-burst-limit={_LIMITLESS}",
        f"--dynamic-controller-concurrent-reconciles={WORKERS}",
        "--zap-log-level=error",
    ]
    program = start("kro", command, server.kubeconfig.parent / "kro.log")
    try:
        yield program.process.pid
    finally:
        program.stop()


def _defined(api: Api, crd: dict[str, object]) -> None:
    """Install a definition, and wait until its kind is served."""
    made = api.post(_DEFINITIONS, crd)
    if made.code == 409:
        # The controller is started again.
        return
    if made.code != 201:
        raise BedError(f"a definition was refused: {made.text}")
    spec = made.json["spec"]
    listed = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    until(f"{listed} was served", partial(_is_served, api, listed))


def _is_served(api: Api, path: str) -> bool:
    # A kind can be listed before it can be watched.
    return api.get(f"{path}?watch=true&timeoutSeconds=1").code == 200
