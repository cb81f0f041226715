"""Kubeconfig files: written for the real server, read from the embedded one."""

import base64
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.bed.certificates import KeyPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The content of a kubeconfig with one context."""

    url: str
    authority: bytes
    token: str


def write_kubeconfig(
    path: Path, *, url: str, authority: Path, pair: KeyPair, token: str | None = None
) -> None:
    """Write a private kubeconfig with one context."""
    user = {
        "client-certificate-data": _encoded(pair.certificate),
        "client-key-data": _encoded(pair.key),
    }
    if token:
        user["token"] = token
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "real", "cluster": {"server": url, "certificate-authority-data": _encoded(authority)}}
        ],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def read_kubeconfig(path: Path) -> Access:
    """Return the access of the first context in a kubeconfig."""
    content = yaml.safe_load(path.read_text())
    cluster = content["clusters"][0]["cluster"]
    return Access(
        url=cluster["server"],
        authority=base64.b64decode(cluster["certificate-authority-data"]),
        token=content["users"][0]["user"]["token"],
    )


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
