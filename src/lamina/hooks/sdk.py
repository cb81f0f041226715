"""
The module that a hooks file imports.

A controller is a function with the decorator `@lamina.sync(...)` or
`@lamina.decorate(...)`. The result is a value that names the controller's kinds and
registers nothing: the loader finds the values in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from lamina.hooks.call import check
from lamina.objects.types import Made, Obj

GROUP = "metacontroller.k8s.io"
API = f"{GROUP}/v1alpha1"
PLURALS = ("compositecontrollers", "decoratorcontrollers")
"""The resources that hooks files declare objects of."""
SCHEME = "hook:"
_ON_DELETE = f"{GROUP}/on-delete"

Function: TypeAlias = Callable[..., Any]
Objects: TypeAlias = Mapping[str, Mapping[str, Obj]]
"""Objects by `Kind.apiVersion`, and then by name: `children["Pod.v1"]["web-0"]`."""
Method: TypeAlias = Literal["OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace"]
ControllerKind: TypeAlias = Literal["CompositeController", "DecoratorController"]


class Later(Exception):
    """Raised by a hook that cannot decide yet: it is called again after so many seconds, and nothing changes."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(f"requested another call in {seconds:g}s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """
    The desired state, where a list of children is not enough.

    `children` are the attachments of a decorator. Without `status`, a composite's
    status is emptied and a decorator's is kept. A label or annotation with the value
    None is removed from the decorated object.
    """

    children: Sequence[Any] = ()
    status: Any = None
    resync_after: float | None = None
    finalized: bool = False
    labels: Mapping[str, str | None] | None = None
    annotations: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """Objects that a customize hook requests: `Related("v1/configmaps", names=["settings"])`."""

    resource: str
    labels: Mapping[str, str] | None = None
    namespace: str = ""
    names: Sequence[str] = ()
    namespace_labels: Mapping[str, str] | None = None

    def as_json(self) -> Made:
        rule = _resource(self.resource)
        if self.labels is not None:
            rule["labelSelector"] = {"matchLabels": dict(self.labels)}
        if self.namespace:
            rule["namespace"] = self.namespace
        if self.names:
            rule["names"] = list(self.names)
        if self.namespace_labels is not None:
            rule["namespaceSelector"] = {"matchLabels": dict(self.namespace_labels)}
        return rule


@dataclass(frozen=True, slots=True)
class Update:
    """
    The update strategy of children of one kind.

    The rolling methods update one child at a time, and the next one only when the
    updated ones meet the conditions in `wait_for`.
    """

    method: Method = "InPlace"
    wait_for: Mapping[str, str] | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None
    paused: bool | None = None
    progress_deadline: int | None = None

    def as_json(self) -> Made:
        strategy: Made = {"method": self.method}
        if self.wait_for:
            checks = [{"type": type, "status": status} for type, status in self.wait_for.items()]
            strategy["statusChecks"] = {"conditions": checks}
        rolling = {
            "maxUnavailable": self.max_unavailable,
            "partition": self.partition,
            "paused": self.paused,
            "progressDeadlineSeconds": self.progress_deadline,
        }
        given = {key: value for key, value in rolling.items() if value is not None}
        return {**strategy, "rollingUpdate": given} if given else strategy


Children: TypeAlias = Sequence[str] | Mapping[str, Method | Update]
"""The kinds of children, as `v1/pods`, or each with its update method; the default is InPlace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """
    A controller whose hooks are functions.

    Called as a function it runs the function under `@lamina.sync`, so that it can be
    tested without a server.
    """

    name: str
    kind: ControllerKind
    spec: Obj
    functions: Mapping[str, Function]
    version: str = "v1"
    timeout: str = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.functions["sync"](*args, **kwargs)

    def finalize(self, function: Function) -> Hook:
        """
        Return this controller with a function that is called instead of sync when the object is being deleted.

        To use the same function for both, write `web = web.finalize(web)`.
        """
        return self._with("finalize", function)

    def customize(self, function: Function) -> Hook:
        """Return this controller with a function that returns the related objects it needs."""
        return self._with("customize", function)

    def _with(self, purpose: str, function: Function) -> Hook:
        if isinstance(function, Hook):
            function = function.functions["sync"]
        check(function, purpose)
        return replace(self, functions={**self.functions, purpose: function})

    def manifest(self, base: str = SCHEME) -> Made:
        """Return the controller object that calls these functions; `base` is their URL, unless they are local."""
        hooks: Made = {}
        for purpose in self.functions:
            webhook: Made = {"url": f"{base}{self.name}/{purpose}", "responseUnMarshallMode": "strict"}
            if self.timeout:
                webhook["timeout"] = self.timeout
            hooks[purpose] = {"version": self.version, "webhook": webhook}
        metadata: Made = {"name": self.name}
        if base == SCHEME and "finalize" in self.functions:
            # If the file no longer declares it, nothing could finalize its parents, so they must not wait for that.
            metadata["annotations"] = {_ON_DELETE: "release"}
        return {
            "apiVersion": API,
            "kind": self.kind,
            "metadata": metadata,
            "spec": {**self.spec, "hooks": hooks},
        }


def sync(
    parent: str,
    *,
    children: Children = (),
    name: str = "",
    labels: Mapping[str, str] | None = None,
    generate_selector: bool = False,
    revision_fields: Sequence[str] = (),
    revisions_kept: int | None = None,
    ignore_status_changes: bool = False,
    resync: int | None = None,
    version: Literal["v1", "v2"] = "v1",
    timeout: str = "",
) -> Callable[[Function], Hook]:
    """
    Declare a CompositeController: the function below returns the children of a parent.

    `parent` is a resource as `example.com/v1/catsets`, `labels` select among its objects.
    A change of the fields in `revision_fields` is rolled out; `revisions_kept` is the
    number of old revisions kept for rollback.
    """
    about = _resource(parent)
    if labels is not None:
        about["labelSelector"] = {"matchLabels": dict(labels)}
    if ignore_status_changes:
        about["ignoreStatusChanges"] = True
    history: Made = {}
    if revision_fields:
        history["fieldPaths"] = list(revision_fields)
    if revisions_kept is not None:
        history["limit"] = revisions_kept
    if history:
        about["revisionHistory"] = history
    spec: Made = {"parentResource": about, "childResources": _children(children)}
    if generate_selector:
        spec["generateSelector"] = True
    if resync is not None:
        spec["resyncPeriodSeconds"] = resync
    return _declare("CompositeController", spec, name, version, timeout)


def decorate(
    *resources: str,
    attachments: Children = (),
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    label_exists: Sequence[str] = (),
    annotation_exists: Sequence[str] = (),
    ignore_status_changes: bool = False,
    resync: int | None = None,
    version: Literal["v1", "v2"] = "v1",
    timeout: str = "",
) -> Callable[[Function], Hook]:
    """
    Declare a DecoratorController: the function below returns the attachments of existing objects.

    `resources` are written as `apps/v1/statefulsets`; the other arguments select
    their objects, and all must match.
    """
    if not resources:
        raise TypeError("decorate: expected at least one resource, as v1/pods")
    chosen: Made = {}
    if labels is not None or label_exists:
        chosen["labelSelector"] = _selector("matchLabels", labels, label_exists)
    if annotations is not None or annotation_exists:
        chosen["annotationSelector"] = _selector("matchAnnotations", annotations, annotation_exists)
    if ignore_status_changes:
        chosen["ignoreStatusChanges"] = True
    spec: Made = {
        "resources": [{**_resource(one), **chosen} for one in resources],
        "attachments": _children(attachments),
    }
    if resync is not None:
        spec["resyncPeriodSeconds"] = resync
    return _declare("DecoratorController", spec, name, version, timeout)


def _declare(
    kind: ControllerKind, spec: Made, name: str, version: str, timeout: str
) -> Callable[[Function], Hook]:
    def declared(function: Function) -> Hook:
        check(function, "sync")
        return Hook(
            name=name or function.__name__.strip("_").replace("_", "-").lower(),
            kind=kind,
            spec=spec,
            functions={"sync": function},
            version=version,
            timeout=timeout,
        )

    return declared


def _children(children: Children) -> list[Made]:
    if isinstance(children, str):
        raise TypeError(f"expected a list of kinds, as [{children!r}], got {children!r}")
    updates: Mapping[str, Method | Update] = (
        children if isinstance(children, Mapping) else {one: Update() for one in children}
    )
    return [
        {
            **_resource(resource),
            "updateStrategy": (Update(update) if isinstance(update, str) else update).as_json(),
        }
        for resource, update in updates.items()
    ]


def _resource(written: str) -> Made:
    api_version, slash, plural = written.rpartition("/")
    if not slash or not api_version or not plural:
        raise ValueError(f"expected a resource with its version, as apps/v1/deployments, got {written!r}")
    return {"apiVersion": api_version, "resource": plural}


def _selector(field: str, matches: Mapping[str, str] | None, exist: Sequence[str]) -> Made:
    made: Made = {field: dict(matches)} if matches else {}
    if exist:
        made["matchExpressions"] = [{"key": key, "operator": "Exists"} for key in exist]
    return made
