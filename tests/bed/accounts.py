"""Service accounts of a server: a kubeconfig with the token of one, and nothing else."""

import base64
from pathlib import Path

import yaml

from tests.bed.server import Server


def account_kubeconfig(server: Server, namespace: str, name: str, folder: Path) -> Path:
    """Request a token for a ServiceAccount, and write a kubeconfig with it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = server.api().post(path, request)
    assert made.code == 201, made.text
    authority = base64.b64encode(server.ca_file.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "here", "cluster": {"server": server.url, "certificate-authority-data": authority}}
        ],
        "users": [{"name": name, "user": {"token": made.json["status"]["token"]}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": name, "namespace": "default"}}],
        "current-context": "here",
    }
    file = folder / f"{namespace}-{name}.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content))
    return file
