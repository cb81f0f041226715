"""
Where a hook is, and how to talk to it.

What a webhook's credentials are made of lies in Secrets and ConfigMaps. Which of
them is known from the spec; what they hold is asked for when it is needed, so a
new certificate counts from the next call on.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from lamina.core.questions import NOBODY, Answers, AskedBy, Call, Credentials, Follow, Listed
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

_PATIENCE = 10.0
_DEFAULT_PORTS = {"https": "443", "http": "80"}

Secret: TypeAlias = Callable[[Ref], Obj | None]
"""How to get at a Secret or a ConfigMap."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """A hook that can be called: where it is, how long it is given, and what its answer looks like."""

    purpose: str
    url: str
    seconds: float
    version: str
    strict: bool
    etag: bool = False
    etag_seconds: float | None = None
    secured: Secured | None = None
    told: str = ""
    """What is taken otherwise than it was written, if anything is."""

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
        asked_by: AskedBy = NOBODY,
    ) -> Call:
        """Return the call that says this to the hook; SpecError where its credentials cannot be had."""
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
            asked_by=asked_by,
        )

    def check(self, look: Secret) -> None:
        """Raise SpecError where its credentials cannot be had."""
        if self.secured is not None:
            _credentials(self.secured, look)


def credentials_of(endpoints: Sequence[Endpoint], kinds: Kinds) -> tuple[Follow, ...]:
    """Return what has to be seen before any of these can be called."""
    return tuple(dict.fromkeys(_follow(kinds, ref) for one in endpoints for ref in one.needs))


def look_in(answers: Answers, kinds: Kinds) -> Secret:
    """Return how to get at the Secrets and ConfigMaps that were seen."""

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
    seconds, told = _patience(webhook, where)
    return Endpoint(
        purpose=purpose,
        url=url,
        seconds=seconds,
        told=told,
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
        raise SpecError(f"{where}: expected url, or service and path, got neither")
    return f"{service.protocol}://{service.name}.{service.namespace}:{service.port}{webhook.path}"


def _patience(webhook: Webhook, where: str) -> tuple[float, str]:
    """Return how long a hook is given, and what is to be said about that."""
    if not webhook.timeout:
        return _PATIENCE, ""
    try:
        seconds = parse_duration(webhook.timeout).total_seconds()
    except ValueError as wrong:
        raise SpecError(f"{where}.timeout: {wrong}") from None
    if seconds > 0:
        return seconds, ""
    return _PATIENCE, f"{where}.timeout: {webhook.timeout} is taken as {_PATIENCE:g}s"


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
        raise SpecError(f"{where}.authorization.type: Basic is said with basicAuth")
    if chosen.ca_bundle is not None:
        _bundle_source(chosen.ca_bundle, where)
    return chosen


def _bundle_source(bundle: CaBundle, where: str) -> None:
    given = [bool(bundle.inline), bundle.secret_ref is not None, bundle.config_map_ref is not None]
    if sum(given) != 1:
        raise SpecError(
            f"{where}.caBundle: expected exactly one of inline, secretRef and configMapRef, got {sum(given)}"
        )


def _is_host(host: str, url: str) -> bool:
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme, "")
    return _with_port(host.lower(), default) == _with_port(parts.netloc.rpartition("@")[2].lower(), default)


def _with_port(host: str, default: str) -> str:
    return host if ":" in host.rpartition("]")[2] or not default else f"{host}:{default}"


def _needed(secured: Secured) -> Sequence[Ref]:
    refs: list[Ref] = []
    if secured.ca_bundle is not None:
        if secured.ca_bundle.secret_ref is not None:
            refs.append(_secret(secured.ca_bundle.secret_ref))
        if secured.ca_bundle.config_map_ref is not None:
            named = secured.ca_bundle.config_map_ref
            refs.append(Ref("v1", "ConfigMap", named.namespace, named.name))
    for part in (secured.authorization, secured.basic_auth, secured.client_tls):
        if part is not None:
            refs.append(_secret(part.secret_ref))
    return refs


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
    named = bundle.secret_ref or bundle.config_map_ref
    assert named is not None, "checked when the controller was set up"
    kind = "Secret" if bundle.secret_ref is not None else "ConfigMap"
    return _value(look, Ref("v1", kind, named.namespace, named.name), named.key or "ca.crt")


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
        raise SpecError(f"{ref}, which a webhook's credentials are in, is not there")
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
