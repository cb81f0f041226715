"""
The address of a hook, its timeout, and the credentials it is called with.

Credentials are kept in Secrets and ConfigMaps, which the spec names. They are
queried for every call, so a new certificate is used from the next call on.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from lamina.core.model.queries import NO_ORIGIN, Answers, Call, CallOrigin, Credentials, Follow, Listed
from lamina.errors import SpecError
from lamina.families.metacontroller.api import (
    BasicAuth,
    CaBundle,
    EndpointConfig,
    Hook,
    SecretRef,
    Secured,
    Webhook,
)
from lamina.objects.durations import parse_duration
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj, Ref

_DEFAULT_TIMEOUT = 10.0
_DEFAULT_PORTS = {"https": "443", "http": "80"}

Secret: TypeAlias = Callable[[Ref], Obj | None]
"""Returns a Secret or a ConfigMap."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """A hook that can be called: its address, its timeout, and the version of its protocol."""

    purpose: str
    url: str
    seconds: float
    version: str
    strict: bool
    etag: bool = False
    etag_seconds: float | None = None
    secured: Secured | None = None
    warning: str = ""
    """Which field of the spec is replaced by a default, if one is."""

    @property
    def needs(self) -> tuple[Ref, ...]:
        """Return the Secrets and ConfigMaps its credentials are in."""
        return tuple(_needed(self.secured)) if self.secured is not None else ()

    def call(
        self,
        body: bytes,
        look: Secret,
        *,
        about: str = "",
        memo: str = "",
        memo_seconds: float = 0.0,
        origin: CallOrigin = NO_ORIGIN,
    ) -> Call:
        """Return the call of the hook with a body; SpecError where its credentials are missing."""
        return Call(
            url=self.url,
            body=body,
            seconds=self.seconds,
            purpose=self.purpose,
            credentials=_credentials(self.secured, look) if self.secured is not None else Credentials(),
            memo=memo,
            memo_seconds=memo_seconds,
            about=about,
            etag=self.etag,
            etag_seconds=self.etag_seconds,
            origin=origin,
        )

    def check(self, look: Secret) -> None:
        """Raise SpecError where its credentials are missing."""
        if self.secured is not None:
            _credentials(self.secured, look)


def credentials_of(endpoints: Sequence[Endpoint], kinds: Kinds) -> tuple[Follow, ...]:
    """Return the queries for the credentials of these hooks."""
    return tuple(dict.fromkeys(_follow(kinds, ref) for one in endpoints for ref in one.needs))


def look_in(answers: Answers, kinds: Kinds) -> Secret:
    """Return the lookup of Secrets and ConfigMaps in the answers."""

    def look(ref: Ref) -> Obj | None:
        found = answers.get(_follow(kinds, ref))
        return found.objects[0] if isinstance(found, Listed) and found.objects else None

    return look


def _follow(kinds: Kinds, ref: Ref) -> Follow:
    kind = kinds.find(ref.api_version, ref.kind)
    assert kind is not None, "every cluster has secrets"
    return Follow(kind=kind, namespaces=(ref.namespace,), names=(ref.name,))


def endpoint(purpose: str, hook: Hook | None, configs: Sequence[EndpointConfig]) -> Endpoint | None:
    """
    Return where a hook is, or None for one that is not there or has no webhook.

    Raises SpecError, which names the field, for one that cannot be called.
    """
    if hook is None or hook.webhook is None:
        return None
    where = f"spec.hooks.{purpose}.webhook"
    webhook = hook.webhook
    url = _url(webhook, where)
    mode = webhook.response_un_marshall_mode
    etag = webhook.etag
    seconds, warning = _timeout(webhook, where)
    return Endpoint(
        purpose=purpose,
        url=url,
        seconds=seconds,
        warning=warning,
        version=hook.version,
        strict=mode == "strict" if mode is not None else hook.version == "v2",
        etag=etag is not None and etag.enabled,
        etag_seconds=etag.cache_timeout_seconds if etag is not None else None,
        secured=_secured(webhook, url, configs, where),
    )


def _url(webhook: Webhook, where: str) -> str:
    if webhook.url:
        return webhook.url
    service = webhook.service
    if service is None or not webhook.path:
        given = (
            "service without path"
            if service is not None
            else "path without service"
            if webhook.path
            else "neither"
        )
        raise SpecError(f"{where}: expected url, or service and path, got {given}")
    return f"{service.protocol}://{service.name}.{service.namespace}:{service.port}{webhook.path}"


def _timeout(webhook: Webhook, where: str) -> tuple[float, str]:
    """Return how long a hook is given, and the warning where that is a default in place of what is written."""
    if not webhook.timeout:
        return _DEFAULT_TIMEOUT, ""
    try:
        seconds = parse_duration(webhook.timeout).total_seconds()
    except ValueError as wrong:
        raise SpecError(f"{where}.timeout: {wrong}") from None
    if seconds > 0:
        return seconds, ""
    return _DEFAULT_TIMEOUT, f"{where}.timeout: {webhook.timeout} is taken as {_DEFAULT_TIMEOUT:g}s"


def _secured(webhook: Webhook, url: str, configs: Sequence[EndpointConfig], where: str) -> Secured | None:
    """Return whose credentials count: the webhook's own, all of them, or those of the first host that is its."""
    chosen: Secured | None = webhook if webhook.is_secured else None
    if chosen is None:
        chosen = next((config for config in configs if _is_host(config.host, url)), None)
    if chosen is None or not chosen.is_secured:
        return None
    if chosen.authorization is not None and chosen.basic_auth is not None:
        raise SpecError(f"{where}: expected authorization or basicAuth, got both")
    if chosen.authorization is not None and chosen.authorization.type.lower() == "basic":
        raise SpecError(
            f"{where}.authorization.type: expected a type other than Basic; set basicAuth instead"
        )
    if (bundle := chosen.ca_bundle) is not None:
        count = sum((bool(bundle.inline), bundle.secret_ref is not None, bundle.config_map_ref is not None))
        if count != 1:
            raise SpecError(
                f"{where}.caBundle: expected exactly one of inline, secretRef and configMapRef, got {count}"
            )
    return chosen


def _is_host(host: str, url: str) -> bool:
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme, "")
    return _with_port(host.lower(), default) == _with_port(parts.netloc.rpartition("@")[2].lower(), default)


def _with_port(host: str, default: str) -> str:
    return host if ":" in host.rpartition("]")[2] or not default else f"{host}:{default}"


def _needed(secured: Secured) -> Iterator[Ref]:
    if secured.ca_bundle is not None and (bundle := _bundle_ref(secured.ca_bundle)) is not None:
        yield bundle
    for part in (secured.authorization, secured.basic_auth, secured.client_tls):
        if part is not None:
            yield _secret(part.secret_ref)


def _bundle_ref(bundle: CaBundle) -> Ref | None:
    if bundle.secret_ref is not None:
        return _secret(bundle.secret_ref)
    named = bundle.config_map_ref
    return Ref("v1", "ConfigMap", named.namespace, named.name) if named is not None else None


def _secret(named: SecretRef) -> Ref:
    return Ref("v1", "Secret", named.namespace, named.name)


def _credentials(secured: Secured, look: Secret) -> Credentials:
    authority = _authority(secured.ca_bundle, look) if secured.ca_bundle is not None else ""
    certificate = key = ""
    if secured.client_tls is not None:
        pair = secured.client_tls
        certificate = _value(look, _secret(pair.secret_ref), pair.cert_key)
        key = _value(look, _secret(pair.secret_ref), pair.private_key_key)
    return Credentials(
        authority=authority, certificate=certificate, key=key, authorization=_authorization(secured, look)
    )


def _authority(bundle: CaBundle, look: Secret) -> str:
    if bundle.inline:
        return bundle.inline
    named, ref = bundle.secret_ref or bundle.config_map_ref, _bundle_ref(bundle)
    assert named is not None and ref is not None, "checked when the controller was set up"
    return _value(look, ref, named.key or "ca.crt")


def _authorization(secured: Secured, look: Secret) -> str:
    if secured.authorization is not None:
        named = secured.authorization.secret_ref
        value = _value(look, _secret(named), named.key or "token").strip()
        return f"{secured.authorization.type or 'Bearer'} {value}"
    if secured.basic_auth is not None:
        return _basic(secured.basic_auth, look)
    return ""


def _basic(basic: BasicAuth, look: Secret) -> str:
    ref = _secret(basic.secret_ref)
    username = _value(look, ref, basic.username_key).strip()
    password = _value(look, ref, basic.password_key).strip()
    if ":" in username:
        raise SpecError(f"{ref}: {basic.username_key} must not contain a colon")
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def _value(look: Secret, ref: Ref, key: str) -> str:
    """Return what a Secret or a ConfigMap holds under a key."""
    obj = look(ref)
    if obj is None:
        raise SpecError(f"{ref} does not exist; it holds the credentials of a webhook")
    data: Mapping[str, str] = obj.get("data") or {}
    text = data.get(key, "")
    if ref.kind == "Secret" and text:
        try:
            text = b64decode(text, validate=True).decode()
        except ValueError:
            raise SpecError(f"{ref}: {key} is no text") from None
    if not text:
        raise SpecError(f"{ref}: expected a value at {key}, got none")
    return text
