"""
Read kubeconfigs: server address and credentials.

Errors name the file and the field, because a configuration may come from several files.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from lamina.client.kubeconfig.exec_plugin import GROUP, VERSIONS, ExecPlugin
from lamina.errors import SettingsError

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "`lamina up` starts a server and writes one"


class Access(Struct, frozen=True, kw_only=True):
    """
    The address of a server, how to verify it, and our credentials.

    Certificates and keys are PEM. Files of a token, or of a client certificate and its
    key, are read periodically, because they are rewritten. `tls_name` is the name to
    verify the certificate against, if it is not the host. The fields that begin with
    `as` request impersonation.
    """

    server: str
    authority: bytes = b""
    insecure: bool = False
    tls_name: str = ""
    proxy: str = ""
    certificate: bytes = b""
    key: bytes = b""
    certificate_file: Path | None = None
    key_file: Path | None = None
    token: str = ""
    token_file: Path | None = None
    username: str = ""
    password: str = ""
    exec: ExecPlugin | None = None
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_extra: Mapping[str, tuple[str, ...]] = {}
    namespace: str = "default"
    user: str = ""
    """The name of the user in the kubeconfig, for messages."""


def read_kubeconfig(files: Path | Sequence[Path], context: str = "", *, hint: str = _HINT) -> Access:
    """
    Return the access that a context of these files describes; the current context unless one is named.

    As with kubectl, the first file that sets a value wins, and missing files are
    skipped unless all are missing. `hint` is the hint of the error in that case.
    """
    config = _Config([files] if isinstance(files, Path) else files, hint)
    chosen = config.section("contexts", context or config.current, "context")
    cluster = config.section("clusters", chosen.text("cluster", required=True), "cluster")
    user = config.section("users", chosen.text("user"), "user") if chosen.text("user") else None
    return Access(
        server=cluster.text("server", required=True),
        tls_name=cluster.text("tls-server-name"),
        authority=cluster.content("certificate-authority"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        proxy=_proxy(cluster),
        namespace=chosen.text("namespace") or "default",
        user=chosen.text("user"),
        **(_identity(user, cluster) if user else {}),
    )


def _proxy(cluster: _Section) -> str:
    proxy = cluster.text("proxy-url")
    if not proxy:
        return ""
    try:
        parts = urlsplit(proxy)
        is_valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.scheme not in ("http", "https"):
        # A user and a password may be in front of the host.
        shown = re.sub(r"//.*@", "//", proxy)
        raise SettingsError(
            f"{cluster.field_path('proxy-url')}: {shown!r} is no URL of an HTTP proxy",
            "http://HOST:PORT is one; SOCKS proxies are not supported",
        )
    return proxy


def _identity(user: _Section, cluster: _Section) -> dict[str, Any]:
    if user.values.get("auth-provider") is not None:
        raise SettingsError(
            f"{user.field_path('auth-provider')}: auth-provider credentials are not supported",
            "client-go has removed them; use exec, a token or a client certificate",
        )
    for missing in ("as-uid", "as-groups", "as-user-extra"):
        if user.values.get(missing) and not user.text("as"):
            raise SettingsError(f"{user.field_path(missing)}: impersonation needs a user", "set `as`")
    token_file = user.text("tokenFile")
    from_files = not user.text("client-certificate-data") and not user.text("client-key-data")
    files = [
        user.file.parent / name
        for field in ("client-certificate", "client-key")
        if (name := user.text(field))
    ]
    certificate_file, key_file = files if from_files and len(files) == 2 else (None, None)
    return {
        "certificate": user.content("client-certificate"),
        "key": user.content("client-key"),
        "certificate_file": certificate_file,
        "key_file": key_file,
        "token": user.text("token"),
        "token_file": user.file.parent / token_file if token_file and not user.text("token") else None,
        "username": user.text("username"),
        "password": user.text("password"),
        "exec": _exec(user, cluster),
        "as_user": user.text("as"),
        "as_uid": user.text("as-uid"),
        "as_groups": _strings(user.field_path("as-groups"), user.values.get("as-groups") or []),
        "as_extra": _extra(user),
    }


def _exec(user: _Section, cluster: _Section) -> ExecPlugin | None:
    if user.values.get("exec") is None:
        return None
    plugin = user.inner("exec")
    version, mode = plugin.text("apiVersion", required=True), plugin.text("interactiveMode")
    if version not in VERSIONS:
        raise SettingsError(
            f"{plugin.field_path('apiVersion')}: {version!r} is not supported",
            f"the supported versions are {' and '.join(VERSIONS)}",
        )
    if mode not in ("", "Never", "IfAvailable", "Always"):
        raise SettingsError(
            f"{plugin.field_path('interactiveMode')}: expected Never, IfAvailable or Always, got {mode!r}"
        )
    if mode == "Always":
        raise SettingsError(
            f"{plugin.field_path('interactiveMode')}: programs get no standard input here",
            "log in with the program first, and set interactiveMode to IfAvailable or Never",
        )
    command = plugin.text("command", required=True)
    if "/" in command and not Path(command).is_absolute():
        # As in client-go: relative to the kubeconfig, not to the working directory.
        command = str((user.file.parent / command).absolute())
    return ExecPlugin(
        command=command,
        api_version=version,
        args=_strings(plugin.field_path("args"), plugin.values.get("args") or []),
        env=tuple(_variables(plugin)),
        install_hint=plugin.text("installHint"),
        cluster=_cluster_info(cluster) if plugin.flag("provideClusterInfo") else None,
    )


def _variables(plugin: _Section) -> Iterator[tuple[str, str]]:
    variables = plugin.values.get("env") or []
    for index, one in enumerate(variables if isinstance(variables, list) else [None]):
        name, value = (one.get("name"), one.get("value", "")) if isinstance(one, Mapping) else (None, None)
        if not (isinstance(name, str) and name and isinstance(value, str)):
            raise SettingsError(f"{plugin.field_path('env')}[{index}]: expected a name and a value")
        yield name, value


def _cluster_info(cluster: _Section) -> dict[str, Any]:
    """Return what a program is told of the cluster; fields that are not set are left out."""
    extensions = cluster.values.get("extensions")
    config = [
        one.get("extension")
        for one in (extensions if isinstance(extensions, list) else ())
        if isinstance(one, Mapping) and one.get("name") == f"{GROUP}/exec"
    ]
    info = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": b64encode(cluster.content("certificate-authority")).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "config": next(iter(config), None),
    }
    return {name: value for name, value in info.items() if value}


def _extra(user: _Section) -> dict[str, tuple[str, ...]]:
    field_path, extra = user.field_path("as-user-extra"), user.values.get("as-user-extra") or {}
    if not isinstance(extra, Mapping):
        raise SettingsError(f"{field_path}: expected fields, got {type(extra).__name__}")
    return {str(key): _strings(f"{field_path}.{key}", values or []) for key, values in extra.items()}


def _strings(field_path: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise SettingsError(f"{field_path}: expected a list of texts, got {values!r}")
    return tuple(values)


def in_cluster(host: str, port: str, folder: Path = IN_CLUSTER) -> Access:
    """Return the access of a pod to its own cluster, from the values of its environment variables."""
    if not host or not port:
        raise SettingsError(
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            "name a kubeconfig",
        )
    token_file, authority = folder / "token", folder / "ca.crt"
    for needed in (token_file, authority):
        if not needed.is_file():
            raise SettingsError(f"{needed}: the service account file is missing")
    namespace = folder / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authority=authority.read_bytes(),
        token_file=token_file,
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


class _Section(Struct, frozen=True):
    """One named entry of a kubeconfig, with its file and position for errors."""

    file: Path
    where: str
    values: Mapping[str, Any]

    def field_path(self, field: str) -> str:
        return f"{self.file}: {self.where}.{field}"

    def text(self, field: str, *, required: bool = False) -> str:
        value = self.values.get(field)
        if value is None or value == "":
            if required:
                raise SettingsError(f"{self.field_path(field)}: this field is missing")
            return ""
        if not isinstance(value, str):
            raise SettingsError(f"{self.field_path(field)}: expected text, got {type(value).__name__}")
        return value

    def inner(self, field: str) -> _Section:
        """Return the fields of a field."""
        values = self.values.get(field)
        if not isinstance(values, Mapping):
            raise SettingsError(f"{self.field_path(field)}: expected fields, got {type(values).__name__}")
        return _Section(self.file, f"{self.where}.{field}", values)

    def flag(self, field: str) -> bool:
        value = self.values.get(field)
        if value is not None and not isinstance(value, bool):
            raise SettingsError(f"{self.field_path(field)}: expected true or false, got {value!r}")
        return bool(value)

    def content(self, field: str) -> bytes:
        """Return what `FIELD-data` holds, or else the file that `FIELD` names, relative to the kubeconfig."""
        data = self.text(f"{field}-data")
        if data:
            try:
                return b64decode(data, validate=True)
            except binascii.Error as error:
                raise SettingsError(f"{self.field_path(field)}-data: invalid base64: {error}") from error
        name = self.text(field)
        if not name:
            return b""
        named = self.file.parent / name
        try:
            return named.read_bytes()
        except OSError as error:
            raise SettingsError(f"{self.field_path(field)}: cannot read {named}: {error.strerror}") from error


class _Config:
    """Several kubeconfigs, merged."""

    def __init__(self, files: Sequence[Path], hint: str) -> None:
        self._documents = [(file, _load(file)) for file in files if file.exists()]
        if not self._documents:
            named = ", ".join(map(str, files)) or "no file was named"
            raise SettingsError(f"there is no kubeconfig: {named}", hint)

    @property
    def current(self) -> str:
        for file, document in self._documents:
            chosen = document.get("current-context")
            if chosen:
                if not isinstance(chosen, str):
                    raise SettingsError(
                        f"{file}: current-context: expected text, got {type(chosen).__name__}"
                    )
                return chosen
        raise SettingsError(
            f"{self._documents[0][0]}: current-context: no current context, and none was named",
            self._known("contexts"),
        )

    def section(self, field: str, name: str, inner: str) -> _Section:
        for file, document in self._documents:
            for index, entry in enumerate(document.get(field) or ()):
                if isinstance(entry, Mapping) and entry.get("name") == name:
                    values = entry.get(inner)
                    where = f"{field}[{index}].{inner}"
                    if not isinstance(values, Mapping):
                        raise SettingsError(f"{file}: {where}: expected fields, got {type(values).__name__}")
                    return _Section(file, where, values)
        named = ", ".join(str(file) for file, _ in self._documents)
        raise SettingsError(f'{named}: {field}: there is none called "{name}"', self._known(field))

    def _known(self, field: str) -> str:
        known = [
            str(entry["name"])
            for _, document in self._documents
            for entry in document.get(field) or ()
            if isinstance(entry, Mapping) and entry.get("name")
        ]
        return f"the {field} are {', '.join(known)}" if known else f"there are no {field}"


def _load(file: Path) -> Mapping[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(file.read_text())
    except OSError as error:
        raise SettingsError(f"{file}: cannot read this kubeconfig: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: invalid YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise SettingsError(f"{file}: invalid kubeconfig: expected fields, got {type(document).__name__}")
    return document
