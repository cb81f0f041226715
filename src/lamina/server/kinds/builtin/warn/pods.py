"""Warnings about pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lamina.objects import names
from lamina.objects.quantities import quantity
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.pods import profile_of
from lamina.server.kinds.builtin.warn.addresses import address_warnings

LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""Deprecated node labels."""

_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": "flocker: deprecated in v1.22, non-functional in v1.25+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
_WITH_FILES: Final = frozenset({"configMap", "secret", "downwardAPI", "projected"})
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_NO_POD: Final = "a null labelSelector results in matching no pod"


def pod_warnings(above: str, metadata: Obj, spec: Obj) -> Iterator[str]:
    """Yield warnings about a pod; `above` is the path to it, with a final dot for a template."""
    path, annotations = f"{above}spec", metadata.get("annotations") or {}
    yield from _placement(path, spec)
    for name, sentence in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{above}metadata.annotations[{name}]: {sentence}"
    yield from _volumes(path, spec)
    yield from _repeats(path, spec)
    for name in ("memory", "ephemeral-storage"):
        yield from _fraction(f"{path}.overhead", spec.get("overhead") or {}, name)
    whole = spec.get("securityContext") or {}
    if "seccompProfile" not in whole and _SECCOMP_POD in annotations:
        yield f"{above}metadata.annotations[{_SECCOMP_POD}]: {_SECCOMP}"
    containers = list(_containers(path, spec))
    for where, container in containers:
        yield from _annotated(above, annotations, whole, container)
        for part in ("limits", "requests"):
            yield from _fraction(
                f"{where}.resources.{part}", container["resources"].get(part) or {}, "memory"
            )
        for part in ("limits", "requests"):
            amounts = container["resources"].get(part) or {}
            yield from _fraction(f"{where}.resources.{part}", amounts, "ephemeral-storage")
        yield from _environment(where, container)
    yield from _ports(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; "
            "negative values are invalid and will be treated as 1"
        )
    yield from _affinity(path, spec)
    for index, address in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_warnings(f"{path}.dnsConfig.nameservers[{index}]", address)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))


def claim_warnings(path: str, spec: Obj) -> Iterator[str]:
    """Yield warnings about a claim."""
    for part in ("requests", "limits"):
        yield from _fraction(f"{path}.resources.{part}", spec["resources"].get(part) or {}, "storage")


def term_warnings(path: str, term: Obj, *, values: bool = False) -> Iterator[str]:
    """Yield warnings about a node selector term; `values` is whether values are checked, too."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        where, key = f"{path}.matchExpressions[{index}]", expression["key"]
        if key in LABELS:
            yield f"{where}.key: {key} is {LABELS[key]}"
        if values:
            for place, value in enumerate(expression.get("values") or ()):
                for complaint in names.label_value(value):
                    yield f"{where}.values[{place}]: {value} is invalid, {complaint}"


def _containers(path: str, spec: Obj) -> Iterator[tuple[str, Obj]]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield f"{path}.{group}[{index}]", container


def _placement(path: str, spec: Obj) -> Iterator[str]:
    for name in spec.get("nodeSelector") or {}:
        if name in LABELS:
            yield f"{path}.nodeSelector[{name}]: {LABELS[name]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate((affinity.get(rule) or {}).get("nodeSelectorTerms") or ()):
        yield from term_warnings(f"{path}.affinity.nodeAffinity.{rule}.nodeSelectorTerms[{index}]", term)
    wish = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(affinity.get(wish) or ()):
        where = f"{path}.affinity.nodeAffinity.{wish}[{index}].preference"
        yield from term_warnings(where, weighted["preference"], values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{path}.topologySpreadConstraints[{index}]", constraint["topologyKey"]
        if key in LABELS:
            yield f"{where}.topologyKey: {key} is {LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_POD}"


def _volumes(path: str, spec: Obj) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        where = f"{path}.volumes[{index}]"
        for name in volume:
            if name in _VOLUMES:
                yield f"{where}.{_VOLUMES[name]}"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim:
            yield from claim_warnings(f"{where}.ephemeral.volumeClaimTemplate.spec", claim["spec"])
    for volume in spec.get("volumes") or ():
        if not volume.keys().isdisjoint(_WITH_FILES):
            yield from _overlaps(volume)


def _overlaps(volume: Obj) -> Iterator[str]:
    """Yield warnings about files of one volume with overlapping paths."""
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        source = volume.get(kind) or {}
        paths = [(item["path"], "") for item in source.get("items") or ()]
        name = source.get("secretName" if kind == "secret" else "name", "")
        title = shown if kind == "downwardAPI" else f'{shown} "{name}"'
        yield from _collisions(volume["name"], title, paths)
    everything: list[tuple[str, str]] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            yield f'volume "{volume["name"]}" (Projected) has no sources provided'
        for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
            inner = source.get(kind) or {}
            title = shown if kind == "downwardAPI" else f'{shown} "{inner.get("name", "")}"'
            everything += [(item["path"], title) for item in inner.get("items") or ()]
        if "serviceAccountToken" in source:
            everything.append((source["serviceAccountToken"]["path"], "ServiceAccountToken"))
    yield from _collisions(volume["name"], "Projected", everything)


def _collisions(volume: str, title: str, paths: list[tuple[str, str]]) -> Iterator[str]:
    seen: list[tuple[str, str]] = []
    for path, source in ((path.rstrip("/"), source) for path, source in paths):
        for other, origin in seen:
            if path and other and f"{path}/".startswith(f"{other}/") | f"{other}/".startswith(f"{path}/"):
                new_path, old_path = _with_source(path, source), _with_source(other, origin)
                yield f'volume "{volume}" ({title}): overlapping paths: {new_path} with {old_path}'
        seen.append((path, source))


def _with_source(path: str, source: str) -> str:
    return f'"{path}" ({source})' if source else f'"{path}"'


def _repeats(path: str, spec: Obj) -> Iterator[str]:
    for group, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(group) or ()):
            value = item.get(key, "")
            if value in seen:
                yield f'{path}.{group}[{index}].{key}: duplicate {key} "{value}"'
            seen.add(value)
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _fraction(path: str, amounts: Obj, name: str) -> Iterator[str]:
    if name not in amounts:
        return
    found = quantity(amounts[name])
    if found.scale < 0 and found.amount.denominator != 1:
        yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def _annotated(above: str, annotations: Obj, whole: Obj, container: Obj) -> Iterator[str]:
    context, name = container.get("securityContext") or {}, container["name"]
    if "seccompProfile" not in context and f"{_SECCOMP_CONTAINER}{name}" in annotations:
        yield f"{above}metadata.annotations[{_SECCOMP_CONTAINER}{name}]: {_SECCOMP}"
    shown_name = annotations.get(f"{_APP_ARMOR}{name}")
    if shown_name is None or (above and "appArmorProfile" in context):
        return
    given, wanted = whole.get("appArmorProfile"), profile_of(shown_name)
    # In a pod the field was set from the annotation; in a template it is not.
    copied = not above and context.get("appArmorProfile") == wanted and wanted is not None
    if (above and (given is None or given != wanted)) or copied or (not above and wanted is None):
        where = f"{above}metadata.annotations[{_APP_ARMOR}{name}]"
        yield f'{where}: deprecated since v1.30; use the "appArmorProfile" field instead'


def _environment(path: str, container: Obj) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable["name"]
        if name not in seen:
            seen.add(name)
            continue
        value, itself = variable.get("value", ""), f"$({name})"
        if variable.get("valueFrom") is not None or value == itself or itself not in value:
            yield (
                f'{path}.env[{index}]: hides previous definition of "{name}", '
                "which may be dropped when using apply"
            )


def _ports(containers: list[tuple[str, Obj]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, Obj]]] = {}
    named: dict[str, str] = {}
    for path, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{path}.ports[{index}]"
            others = known.setdefault((port["containerPort"], port.get("protocol", "")), [])
            for place, other in others:
                if relation := _relation(port, other):
                    yield f"{where}: {relation} port definition with {place}"
            others.append((where, port))
    for path, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            name, where = port.get("name"), f"{path}.ports[{index}]"
            if name and name in named:
                first = named[name]
                yield (
                    f'{where}: duplicate port name "{name}" with {first}, '
                    f"services and probes that select ports by name will use {first}"
                )
            elif name:
                named[name] = where


def _relation(port: Obj, other: Obj) -> str:
    new_path, old_path = port.get("hostPort", 0), other.get("hostPort", 0)
    item_path, there = port.get("hostIP", ""), other.get("hostIP", "")
    if (new_path, item_path) == (old_path, there):
        return "duplicate"
    if not new_path or not old_path:
        return "overlapping"
    if new_path == old_path and bool(item_path) != bool(there):
        return "dangerously ambiguous"
    return ""


def _affinity(path: str, spec: Obj) -> Iterator[str]:
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(side) or {}
        rule = "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(affinity.get(rule) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.affinity.{side}.{rule}[{index}].labelSelector: {_NO_POD}"
        wish = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, weighted in enumerate(affinity.get(wish) or ()):
            if weighted["podAffinityTerm"].get("labelSelector") is None:
                yield f"{path}.affinity.{side}.{wish}[{index}].podAffinityTerm.labelSelector: {_NO_POD}"
