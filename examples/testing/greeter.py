"""A small operator, written with kopf: it writes a greeting into the status of a Greeting."""

from base64 import b64decode
from os import environ
from pathlib import Path
from typing import Any

import kopf
import yaml


@kopf.on.create("example.com", "v1", "greetings")
@kopf.on.update("example.com", "v1", "greetings", field="spec")
def greet(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    """Write the greeting into the status."""
    patch.status["said"] = f"hello {spec['name']}"


@kopf.on.login()
def login(**_: Any) -> kopf.ConnectionInfo:
    """Read the connection from the kubeconfig."""
    config = yaml.safe_load(Path(environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_data=b64decode(cluster["certificate-authority-data"]),
        scheme="Bearer",
        token=user["token"],
    )
