"""
Credentials from a program, as `users[].user.exec` of a kubeconfig names it.

The protocol is that of client-go: the program gets KUBERNETES_EXEC_INFO and prints an
ExecCredential with a token, a client certificate or both, which are used until they
expire or a server answers 401. It gets no standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import Any

from msgspec import Struct

from lamina.errors import Unreachable
from lamina.objects.times import moment

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_TIMEOUT = 60.0
_KILLED = 1.0
"""How long the end of a killed program is waited for."""
_MAX_SHOWN = 500


class ExecPlugin(Struct, frozen=True, kw_only=True):
    """A program that prints credentials, and what it is told of the cluster, if it asks for that."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None


class ExecCredential(Struct, frozen=True, kw_only=True):
    """What a program printed: a bearer token, a client certificate and its key in PEM, and until when."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None

    @property
    def has_expired(self) -> bool:
        return self.expires is not None and datetime.now(UTC) >= self.expires


async def run_plugin(plugin: ExecPlugin) -> ExecCredential:
    """Run the program, and return the credentials that it prints; Unreachable if it prints none."""
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env=_environment(plugin),
            start_new_session=True,
        )
    except OSError as error:
        raise _failure(plugin, f"cannot be run: {error.strerror}") from error
    try:
        async with asyncio.timeout(_TIMEOUT):
            output, errors = await process.communicate()
    except TimeoutError:
        raise _failure(plugin, f"did not end within {_TIMEOUT:g}s") from None
    finally:
        if process.returncode is None:
            # Programs that it has started hold its pipes open, and belong to its session.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            with suppress(TimeoutError):
                async with asyncio.timeout(_KILLED):
                    await process.wait()
    if process.returncode:
        said = errors.decode(errors="replace").strip()[-_MAX_SHOWN:]
        raise _failure(plugin, f"failed with exit code {process.returncode}" + (f": {said}" if said else ""))
    return _read(plugin, output)


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _read(plugin: ExecPlugin, output: bytes) -> ExecCredential:
    # What it printed is in no message: it may be a secret.
    try:
        printed = json.loads(output)
    except ValueError:
        raise _failure(plugin, "printed no JSON") from None
    if not isinstance(printed, dict) or printed.get("kind") != "ExecCredential":
        raise _failure(plugin, "printed no ExecCredential")
    if printed.get("apiVersion") != plugin.api_version:
        raise _failure(
            plugin, f"printed apiVersion {printed.get('apiVersion')}, where {plugin.api_version} was expected"
        )
    status = printed.get("status")
    if not isinstance(status, dict):
        raise _failure(plugin, "printed an ExecCredential without a status")
    texts = {name: status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")}
    if any(not isinstance(text, str) for text in texts.values()):
        raise _failure(plugin, "printed credentials that are no text")
    certificate, key = texts["clientCertificateData"], texts["clientKeyData"]
    if bool(certificate) != bool(key):
        raise _failure(plugin, "printed a client certificate without its key, or a key without a certificate")
    if not texts["token"] and not certificate:
        raise _failure(plugin, "printed neither a token nor a client certificate")
    if not (texts["token"].isascii() and texts["token"].isprintable()):
        raise _failure(plugin, "printed no valid token")
    until = status.get("expirationTimestamp")
    expires = moment(until) if isinstance(until, str) else None
    if until and expires is None:
        raise _failure(plugin, f"printed an invalid expirationTimestamp: {until!r}")
    return ExecCredential(
        token=texts["token"], certificate=certificate.encode(), key=key.encode(), expires=expires
    )


def invalid_certificate(plugin: ExecPlugin) -> Unreachable:
    return _failure(plugin, "printed a client certificate that cannot be used with its key")


def _failure(plugin: ExecPlugin, problem: str) -> Unreachable:
    error = Unreachable(f"getting credentials: {Path(plugin.command).name} {problem}")
    error.hint = plugin.install_hint or None
    return error
