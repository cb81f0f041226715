"""Selects and runs kubectl."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bed.build import KUBECTL_34, KUBECTL_35, built

OLDEST = (1, 32)
PINNED = {"0.35": KUBECTL_35, "0.34": KUBECTL_34}


def kubectl_command(chosen: str | None = None) -> Path:
    """
    Return the kubectl to test with.

    `chosen` (or LAMINA_TEST_KUBECTL) is a pinned minor, such as 0.34, or a file. The
    default is the one on PATH, or in the folder KUBEBUILDER_ASSETS, if it is new enough,
    and the newest pinned one otherwise.
    """
    wanted = chosen or os.environ.get("LAMINA_TEST_KUBECTL")
    if wanted:
        return built(PINNED[wanted]) if wanted in PINNED else Path(wanted)
    for folder in (None, os.environ.get("KUBEBUILDER_ASSETS")):
        found = shutil.which("kubectl", path=folder)
        if found and client_version(Path(found)) >= OLDEST:
            return Path(found)
    return built(KUBECTL_35)


def client_version(command: Path) -> tuple[int, int]:
    """Return major and minor of a kubectl; (0, 0) if its version is unknown."""
    told = subprocess.run(
        [command, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
    )
    try:
        said = json.loads(told.stdout)["clientVersion"]["gitVersion"]
    except (ValueError, KeyError):
        return (0, 0)
    found = re.match(r"v(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def both(self) -> str:
        """The whole output, stdout first."""
        return self.out + self.err


class Kubectl:
    """
    kubectl with the kubeconfig of one server.

    Called with command line arguments, it returns stdout, and fails the test if kubectl
    fails; `attempt` returns the outcome instead.
    """

    def __init__(self, command: Path, kubeconfig: Path, namespace: str = "default") -> None:
        self.command = command
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        # A private discovery cache: another server may have had this address before.
        self._cache = kubeconfig.parent / "kubectl-cache"

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        done = self.attempt(*arguments, given=given)
        assert done.code == 0, f"kubectl {' '.join(arguments)} ended with {done.code}:\n{done.both}"
        return done.out

    def attempt(
        self, *arguments: str, given: str | None = None, timeout: float = 300.0, editor: str | None = None
    ) -> Outcome:
        """Run kubectl with `given` as standard input, and return its outcome."""
        done = subprocess.run(
            self.line(*arguments),
            input=given or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | ({"EDITOR": editor, "KUBE_EDITOR": editor} if editor else {}),
            check=False,
        )
        return Outcome(code=done.returncode, out=done.stdout, err=done.stderr)

    def line(self, *arguments: str) -> Sequence[str]:
        """Return the whole command line."""
        return [
            str(self.command),
            f"--kubeconfig={self._kubeconfig}",
            f"--cache-dir={self._cache}",
            f"--namespace={self._namespace}",
            *arguments,
        ]

    def within(self, namespace: str) -> "Kubectl":
        """Return the same kubectl with another default namespace."""
        return Kubectl(self.command, self._kubeconfig, namespace)
