"""
Builders of objects for tests, with sensible defaults.

The objects are deeply frozen, so code that modifies its input fails at once.
`edited` returns a changed copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from yaml.representer import SafeRepresenter

from lamina.merge.patches import merge_patch
from lamina.objects.types import Made, Obj
from lamina.simulation.cluster.object_rules import deep_copy

__all__ = [
    "config_map",
    "custom",
    "definition",
    "deployment",
    "edited",
    "frozen",
    "namespace",
    "node",
    "pod",
    "secret",
    "service",
    "stateful_set",
]


def _refuse(self: object, *arguments: object, **named: object) -> NoReturn:
    raise TypeError("this object is frozen: change a copy with `edited`, or copy it with `dict` and `list`")


class FrozenDict(dict[str, Any]):
    """An immutable dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))

    def __copy__(self) -> Made:
        return dict(self)

    def __deepcopy__(self, memo: object) -> Made:
        made: Made = deep_copy(self)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (deep_copy(self),)


class FrozenList(list[Any]):
    """An immutable list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Any]:
        made: list[Any] = deep_copy(self)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (deep_copy(self),)


# As plain YAML: tests write manifests for kubectl from frozen objects.
SafeRepresenter.add_representer(FrozenDict, SafeRepresenter.represent_dict)
SafeRepresenter.add_representer(FrozenList, SafeRepresenter.represent_list)


def frozen(value: Any) -> Any:
    """Return an immutable copy of an object, or of a part of one."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(held) for key, held in value.items()})
    if isinstance(value, list | tuple):
        return FrozenList(frozen(held) for held in value)
    return value


def edited(obj: Obj, **changes: Any) -> Obj:
    """Return a copy with a merge patch applied: `edited(web, spec={"replicas": 5})`; None removes a field."""
    patched: Obj = frozen(merge_patch(deep_copy(obj), changes))
    return patched


def custom(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str | None = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> Obj:
    """Return an object of any kind; `body` has the fields besides metadata. `namespace=None` is for cluster scope."""
    metadata: Made = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= {"labels": dict(labels)} if labels else {}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    made: Obj = frozen({"apiVersion": api_version, "kind": kind, "metadata": metadata, **body})
    return made


def namespace(name: str, **fields: Any) -> Obj:
    return custom("v1", "Namespace", name, **{"namespace": None, **fields})


def node(name: str, **fields: Any) -> Obj:
    return custom("v1", "Node", name, **{"namespace": None, "spec": {}, **fields})


def config_map(name: str, data: Mapping[str, str] | None = None, **fields: Any) -> Obj:
    return custom("v1", "ConfigMap", name, data=dict(data or {}), **fields)


def secret(name: str, data: Mapping[str, str] | None = None, **fields: Any) -> Obj:
    return custom("v1", "Secret", name, stringData=dict(data or {}), **fields)


def pod(name: str, *, image: str = "web:1", spec: Mapping[str, Any] | None = None, **fields: Any) -> Obj:
    body = {"containers": [{"name": "main", "image": image}], **(spec or {})}
    return custom("v1", "Pod", name, **{"labels": {"app": name}, "spec": body, **fields})


def service(name: str, *, port: int = 80, spec: Mapping[str, Any] | None = None, **fields: Any) -> Obj:
    body = {"selector": {"app": name}, "ports": [{"port": port}], **(spec or {})}
    return custom("v1", "Service", name, spec=body, **fields)


def deployment(
    name: str,
    *,
    image: str = "web:1",
    replicas: int = 3,
    spec: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Obj:
    """Return a Deployment of pods labelled `app: NAME`."""
    return custom("apps/v1", "Deployment", name, spec=_workload(name, image, replicas, spec), **fields)


def stateful_set(
    name: str,
    *,
    image: str = "web:1",
    replicas: int = 3,
    spec: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Obj:
    """Return a StatefulSet of pods labelled `app: NAME`."""
    body = {"serviceName": name, **_workload(name, image, replicas, spec)}
    return custom("apps/v1", "StatefulSet", name, spec=body, **fields)


def _workload(name: str, image: str, replicas: int, spec: Mapping[str, Any] | None) -> Made:
    labels = {"app": name}
    return {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": image}]},
        },
        **(spec or {}),
    }


def definition(
    kind: str,
    *,
    group: str = "example.com",
    plural: str = "",
    version: str = "v1",
    scope: str = "Namespaced",
    schema: Mapping[str, Any] | None = None,
) -> Obj:
    """Return a CustomResourceDefinition with a status subresource; without a schema, all fields are allowed."""
    plural = plural or f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": dict(schema or anything)},
        "subresources": {"status": {}},
    }
    spec = {
        "group": group,
        "scope": scope,
        "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
        "versions": [served],
    }
    return custom(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", namespace=None, spec=spec
    )
