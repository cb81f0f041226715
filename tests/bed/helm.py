"""Runs the pinned Helm on the chart."""

import subprocess
from pathlib import Path

import yaml

from lamina.objects.types import Made
from tests.bed.build import HELM, KUBERNETES, built

CHART = Path(__file__).parents[2] / "charts" / "lamina"


def helm(*arguments: str, code: int = 0, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm; its caches are in `home`."""
    folder = str(home or "/nonexistent")
    environ = {"HOME": folder, "XDG_CACHE_HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
    done = subprocess.run(
        [built(HELM), *arguments], capture_output=True, text=True, timeout=180, check=False, env=environ
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def rendered(*arguments: str, name: str = "lamina", namespace: str = "lamina-system") -> list[Made]:
    """Return the objects that the chart renders to."""
    text = helm(
        "template", name, str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES, *arguments
    ).stdout
    return [one for one in yaml.safe_load_all(text) if one]
