"""
Kubeconfigs: how to reach a server, and as whom.

A wrong file is reported with its name and the field that is wrong, because the
person who has to correct it has several of both.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.errors import SettingsError

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "`lamina up` starts a server and writes one"


class Access(Struct, frozen=True, kw_only=True):
    """
    Where a server is, how to know it, and who we are there.

    Certificates and keys are PEM. A token that lives in a file is read from it
    again and again, since somebody renews it. `tls_name` is what a certificate
    must be for, where it is not for the host. The fields that begin with `as`
    say who we act as, if the server lets us.
    """

    server: str
    authority: bytes = b""
    insecure: bool = False
    tls_name: str = ""
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: Path | None = None
    username: str = ""
    password: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_extra: Mapping[str, tuple[str, ...]] = {}
    namespace: str = "default"


def read_kubeconfig(files: Path | Sequence[Path], context: str = "", *, hint: str = _HINT) -> Access:
    """
    Return the access that a context of these files describes; the current one unless one is named.

    As with kubectl, the first file that mentions something is right about it,
    and files that do not exist are passed over as long as one does. `hint` is what
    to do where none does.
    """
    config = _Config([files] if isinstance(files, Path) else files, hint)
    chosen = config.section("contexts", context or config.current, "context")
    cluster = config.section("clusters", chosen.text("cluster", required=True), "cluster")
    user = config.section("users", chosen.text("user"), "user") if chosen.text("user") else None
    if cluster.text("proxy-url"):
        raise SettingsError(f"{cluster.place('proxy-url')}: servers behind a proxy are not supported")
    return Access(
        server=cluster.text("server", required=True),
        tls_name=cluster.text("tls-server-name"),
        authority=cluster.content("certificate-authority"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        namespace=chosen.text("namespace") or "default",
        **(_identity(user) if user else {}),
    )


def _identity(user: _Section) -> dict[str, Any]:
    for unsupported in ("exec", "auth-provider"):
        if user.values.get(unsupported) is not None:
            raise SettingsError(
                f"{user.place(unsupported)}: credentials that a program must be run for are not supported",
                "use a token or a client certificate",
            )
    for about in ("as-uid", "as-groups", "as-user-extra"):
        if user.values.get(about) and not user.text("as"):
            raise SettingsError(f"{user.place(about)}: whom this is about is missing", "say who in `as`")
    token_file = user.text("tokenFile")
    return {
        "certificate": user.content("client-certificate"),
        "key": user.content("client-key"),
        "token": user.text("token"),
        "token_file": user.file.parent / token_file if token_file and not user.text("token") else None,
        "username": user.text("username"),
        "password": user.text("password"),
        "as_user": user.text("as"),
        "as_uid": user.text("as-uid"),
        "as_groups": _texts(user.place("as-groups"), user.values.get("as-groups") or []),
        "as_extra": _extra(user),
    }


def _extra(user: _Section) -> dict[str, tuple[str, ...]]:
    place, extra = user.place("as-user-extra"), user.values.get("as-user-extra") or {}
    if not isinstance(extra, Mapping):
        raise SettingsError(f"{place}: expected fields, got {type(extra).__name__}")
    return {str(key): _texts(f"{place}.{key}", values or []) for key, values in extra.items()}


def _texts(place: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise SettingsError(f"{place}: expected a list of texts, got {values!r}")
    return tuple(values)


def in_cluster(host: str, port: str, folder: Path = IN_CLUSTER) -> Access:
    """Return the access of a pod to its own cluster, given where its environment says the server is."""
    if not host or not port:
        raise SettingsError(
            "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            "name a kubeconfig",
        )
    token_file, authority = folder / "token", folder / "ca.crt"
    for needed in (token_file, authority):
        if not needed.is_file():
            raise SettingsError(f"{needed}: a pod's service account has this file, and it is not there")
    namespace = folder / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authority=authority.read_bytes(),
        token_file=token_file,
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


class _Section(Struct, frozen=True):
    """One named entry of a kubeconfig, which knows where it stands."""

    file: Path
    where: str
    values: Mapping[str, Any]

    def place(self, field: str) -> str:
        return f"{self.file}: {self.where}.{field}"

    def text(self, field: str, *, required: bool = False) -> str:
        value = self.values.get(field)
        if value is None or value == "":
            if required:
                raise SettingsError(f"{self.place(field)}: this field is missing")
            return ""
        if not isinstance(value, str):
            raise SettingsError(f"{self.place(field)}: expected text, got {type(value).__name__}")
        return value

    def flag(self, field: str) -> bool:
        value = self.values.get(field)
        if value is not None and not isinstance(value, bool):
            raise SettingsError(f"{self.place(field)}: expected true or false, got {value!r}")
        return bool(value)

    def content(self, field: str) -> bytes:
        """Return what `FIELD-data` holds, or else the file that `FIELD` names, relative to the kubeconfig."""
        data = self.text(f"{field}-data")
        if data:
            try:
                return b64decode(data, validate=True)
            except binascii.Error as error:
                raise SettingsError(f"{self.place(field)}-data: this is no base64: {error}") from error
        name = self.text(field)
        if not name:
            return b""
        named = self.file.parent / name
        try:
            return named.read_bytes()
        except OSError as error:
            raise SettingsError(f"{self.place(field)}: {named} cannot be read: {error.strerror}") from error


class _Config:
    """Several kubeconfigs, read as one."""

    def __init__(self, files: Sequence[Path], hint: str) -> None:
        self._documents = [(file, _load(file)) for file in files if file.exists()]
        if not self._documents:
            named = ", ".join(map(str, files)) or "none was named"
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
            f"{self._documents[0][0]}: current-context: none is chosen, and none was named",
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
        raise SettingsError(f"{file}: this kubeconfig cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: this kubeconfig is no YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise SettingsError(f"{file}: this is no kubeconfig: expected fields, got {type(document).__name__}")
    return document
