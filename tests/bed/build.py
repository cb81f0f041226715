"""
Builds the reference programs from public Go modules, into the cache.

Each folder under `go/` is a module that pins one program: its go.mod has the versions, its
go.sum the content. Everything that the result depends on is in the key of the cache entry.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bed.cache import remembered
from tests.bed.go import go_command, go_environment
from tests.bed.trouble import BedError

MODULES = Path(__file__).parent / "go"
BENCH = Path(__file__).parents[2] / "bench"
KUBERNETES = "1.35.4"
ETCD = "3.6.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """
    One program, and how it is built.

    The linker sets the version of a `stamped` program, as in Kubernetes' releases.
    """

    name: str
    version: str
    module: Path
    package: str = "."
    stamped: bool = False
    is_test: bool = False

    def key(self) -> str:
        """Return a name for the result that changes with anything that it depends on."""
        digest = hashlib.sha256(" ".join(self.arguments()).encode())
        for source in sorted(self.module.rglob("*")):
            if source.suffix in {".go", ".mod", ".sum"}:
                digest.update(f"\n{source.relative_to(self.module)}\n".encode())
                digest.update(source.read_bytes())
        return f"{self.version}-{digest.hexdigest()[:16]}"

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of `go`, up to the output path."""
        link = ["-s", "-w"]
        if self.stamped:
            major, minor, _ = self.version.split(".")
            for variable, value in [
                ("gitVersion", f"v{self.version}"),
                ("gitMajor", major),
                ("gitMinor", minor),
                ("gitTreeState", "clean"),
            ]:
                link += ["-X", f"k8s.io/component-base/version.{variable}={value}"]
        verb = ("test", "-c", "-vet=off") if self.is_test else ("build",)
        return (*verb, "-trimpath", "-ldflags", " ".join(link), self.package)


APISERVER = Artefact(
    name="kube-apiserver",
    version=KUBERNETES,
    module=MODULES / "real",
    package="k8s.io/kubernetes/cmd/kube-apiserver",
    stamped=True,
)
CONTROLLER_MANAGER = Artefact(
    name="kube-controller-manager",
    version=KUBERNETES,
    module=MODULES / "real",
    package="k8s.io/kubernetes/cmd/kube-controller-manager",
    stamped=True,
)
ETCD_SERVER = Artefact(name="etcd", version=ETCD, module=MODULES / "etcd")
KUBECTL_35 = Artefact(name="kubectl", version="1.35.4", module=MODULES / "kubectl-0.35", stamped=True)
KUBECTL_34 = Artefact(name="kubectl", version="1.34.4", module=MODULES / "kubectl-0.34", stamped=True)
HELM = Artefact(name="helm", version="3.20.2", module=MODULES / "helm", package="helm.sh/helm/v3/cmd/helm")
MONITORING = Artefact(name="monitoring", version="ours", module=MODULES / "monitoring")
E2E = Artefact(
    name="e2e.test",
    version=KUBERNETES,
    module=MODULES / "e2e",
    package="k8s.io/kubernetes/test/e2e",
    stamped=True,
    is_test=True,
)
LOAD_GENERATOR = Artefact(name="load", version="ours", module=BENCH / "load")
OCM_HUB = Artefact(
    name="work",
    version="1.2.0",
    module=BENCH / "originals" / "ocm",
    package="open-cluster-management.io/ocm/cmd/work",
)

KRO = Artefact(
    name="kro",
    version="0.9.4",
    module=BENCH / "originals" / "kro",
    package="github.com/kubernetes-sigs/kro/cmd/controller",
)

FAMILIES: dict[str, tuple[Artefact, ...]] = {
    "real": (APISERVER, ETCD_SERVER, CONTROLLER_MANAGER),
    "kubectl": (KUBECTL_35, KUBECTL_34),
    "helm": (HELM, MONITORING),
    "e2e": (E2E,),
    "load": (LOAD_GENERATOR,),
    "kro": (KRO,),
    "originals": (OCM_HUB, KRO),
}


def built(artefact: Artefact) -> Path:
    """
    Return the program, building it if it is not cached.

    For the programs of the real control plane, a folder in KUBEBUILDER_ASSETS takes
    precedence, as with envtest.
    """
    if artefact in FAMILIES["real"] and (assets := os.environ.get("KUBEBUILDER_ASSETS")):
        given = Path(assets) / artefact.name
        if given.is_file():
            return given
    return remembered(artefact.name, artefact.key(), _maker(artefact)) / artefact.name


def build(families: Sequence[str]) -> None:
    """Build every program of the families, one after the other, and print the paths."""
    for family in families:
        for artefact in FAMILIES[family]:
            print(f"{artefact.name:26}{artefact.version:8}{built(artefact)}", flush=True)


def _maker(artefact: Artefact) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        go = go_command()
        *arguments, package = artefact.arguments()
        said = f"{artefact.name} {artefact.version}"
        print(f"building {said} (this happens once)", file=sys.stderr, flush=True)
        started = time.monotonic()
        done = subprocess.run(
            [go, *arguments, "-o", folder / artefact.name, package],
            cwd=artefact.module,
            env=go_environment(),
            stdout=sys.stderr,
            check=False,
        )
        if done.returncode != 0:
            raise BedError(
                f"{said} could not be built from {artefact.module.name}/go.mod: `go` says why above; "
                "it needs the public Go modules, or KUBEBUILDER_ASSETS naming a folder with the programs"
            )
        print(f"built {said} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    return make
