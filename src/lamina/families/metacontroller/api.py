"""
The specs of CompositeController and DecoratorController as structs.

The schema of the CustomResourceDefinition is generated from them, so the API server
refuses what it excludes; rules about several fields are checked in compile.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from lamina.core.parse import read
from lamina.objects.types import Obj

Int32: TypeAlias = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
UpdateMethod: TypeAlias = Literal["OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace"]
IntOrPercent: TypeAlias = Annotated[int | str, Meta(extra_json_schema={"x-kubernetes-int-or-string": True})]


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec; field names are camel case in JSON."""


class Requirement(_Part, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(_Part, frozen=True, kw_only=True):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class AnnotationSelector(_Part, frozen=True, kw_only=True):
    match_annotations: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class SecretRef(_Part, frozen=True, kw_only=True):
    name: str
    namespace: str
    key: str = ""


class CaBundle(_Part, frozen=True, kw_only=True):
    """Where the certificates of a webhook's authority are: exactly one of the three."""

    inline: str = ""
    secret_ref: SecretRef | None = None
    config_map_ref: SecretRef | None = None


class Authorization(_Part, frozen=True, kw_only=True):
    secret_ref: SecretRef
    type: str = "Bearer"


class BasicAuth(_Part, frozen=True, kw_only=True):
    secret_ref: SecretRef
    username_key: str = "username"
    password_key: str = "password"


class ClientTls(_Part, frozen=True, kw_only=True):
    secret_ref: SecretRef
    cert_key: str = "tls.crt"
    private_key_key: str = "tls.key"


class Etag(_Part, frozen=True, kw_only=True):
    enabled: bool = False
    cache_timeout_seconds: Int32 | None = None
    cache_cleanup_seconds: Int32 | None = None


class Service(_Part, frozen=True, kw_only=True):
    name: str
    namespace: str
    port: Int32 = 80
    protocol: str = "http"


class Secured(_Part, frozen=True, kw_only=True):
    """How a webhook is verified, and the credentials it is called with."""

    ca_bundle: CaBundle | None = None
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    client_tls: ClientTls | None = field(name="clientTLS", default=None)

    @property
    def is_secured(self) -> bool:
        return any((self.ca_bundle, self.authorization, self.basic_auth, self.client_tls))


class Webhook(Secured, frozen=True, kw_only=True):
    url: str = ""
    service: Service | None = None
    path: str = ""
    timeout: str = ""
    response_un_marshall_mode: Literal["loose", "strict"] | None = None
    etag: Etag | None = None


class Hook(_Part, frozen=True, kw_only=True):
    version: Literal["v1", "v2"] = "v1"
    webhook: Webhook | None = None


class EndpointConfig(Secured, frozen=True, kw_only=True):
    host: str


class CompositeHooks(_Part, frozen=True, kw_only=True):
    customize: Hook | None = None
    sync: Hook | None = None
    finalize: Hook | None = None
    pre_update_child: Hook | None = None
    post_update_child: Hook | None = None


class DecoratorHooks(_Part, frozen=True, kw_only=True):
    customize: Hook | None = None
    sync: Hook | None = None
    finalize: Hook | None = None


class StatusCheckCondition(_Part, frozen=True, kw_only=True):
    type: str
    status: str | None = None
    reason: str | None = None


class StatusChecks(_Part, frozen=True, kw_only=True):
    conditions: tuple[StatusCheckCondition, ...] = ()


class RollingUpdate(_Part, frozen=True, kw_only=True):
    """The pace of a rollout; Metacontroller itself has no such fields."""

    max_unavailable: IntOrPercent | None = None
    partition: Annotated[Int32, Meta(ge=0)] = 0
    paused: bool = False
    progress_deadline_seconds: Annotated[Int32, Meta(ge=1)] | None = None


class ChildUpdateStrategy(_Part, frozen=True, kw_only=True):
    method: UpdateMethod | Literal[""] = ""
    status_checks: StatusChecks | None = None
    rolling_update: RollingUpdate | None = None


class ChildResource(_Part, frozen=True, kw_only=True):
    api_version: str
    resource: str
    update_strategy: ChildUpdateStrategy | None = None


class RevisionHistory(_Part, frozen=True, kw_only=True):
    field_paths: tuple[str, ...] = ()
    limit: Annotated[Int32, Meta(ge=0)] = 0


class ParentResource(_Part, frozen=True, kw_only=True):
    api_version: str
    resource: str
    label_selector: LabelSelector | None = None
    ignore_status_changes: bool = False
    revision_history: RevisionHistory | None = None


class CompositeSpec(_Part, frozen=True, kw_only=True):
    parent_resource: ParentResource
    child_resources: tuple[ChildResource, ...] = ()
    hooks: CompositeHooks | None = None
    endpoint_configs: tuple[EndpointConfig, ...] = ()
    resync_period_seconds: Int32 | None = None
    generate_selector: bool = False


class DecoratedResource(_Part, frozen=True, kw_only=True):
    api_version: str
    resource: str
    label_selector: LabelSelector | None = None
    annotation_selector: AnnotationSelector | None = None
    ignore_status_changes: bool = False


class AttachmentUpdateStrategy(_Part, frozen=True, kw_only=True):
    method: UpdateMethod | Literal[""] = ""


class Attachment(_Part, frozen=True, kw_only=True):
    api_version: str
    resource: str
    update_strategy: AttachmentUpdateStrategy | None = None


class DecoratorSpec(_Part, frozen=True, kw_only=True):
    resources: tuple[DecoratedResource, ...]
    attachments: tuple[Attachment, ...] = ()
    hooks: DecoratorHooks | None = None
    endpoint_configs: tuple[EndpointConfig, ...] = ()
    resync_period_seconds: Int32 | None = None


class RelatedResourceRule(_Part, frozen=True, kw_only=True):
    """The related objects that a customize hook selects."""

    api_version: str
    resource: str
    label_selector: dict[str, Any] | None = None
    namespace_selector: dict[str, Any] | None = None
    namespace: str = ""
    names: tuple[str, ...] = ()


def composite(obj: Obj) -> CompositeSpec:
    """Decode a CompositeController; SpecError names the field that is invalid."""
    return read(obj.get("spec"), CompositeSpec)


def decorator(obj: Obj) -> DecoratorSpec:
    """Decode a DecoratorController; SpecError names the field that is invalid."""
    return read(obj.get("spec"), DecoratorSpec)


def rule(value: Any) -> RelatedResourceRule:
    """Return one rule of a customize response; SpecError where it is not understood."""
    return read(value, RelatedResourceRule, "relatedResources[]")
