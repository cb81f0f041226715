"""Roles and the bindings that give them to people."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import compiled, label_selector
from lamina.server.builtin.validate.parts import items, named, part, ruled, supported, text
from lamina.server.fields import invalid, not_supported, required

_GROUP = "rbac.authorization.k8s.io"


def role(obj: Obj) -> list[Cause]:
    return _rules(obj, namespaced=True)


def cluster_role(obj: Obj) -> list[Cause]:
    said = _rules(obj, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return said
    selectors = items(aggregation, "clusterRoleSelectors")
    if not selectors:
        told = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        said.append(required("aggregationRule.clusterRoleSelectors", told))
    for index, selector in enumerate(selectors):
        here = f"aggregationRule.clusterRoleSelectors[{index}]"
        said += label_selector(selector, here)
        if compiled(selector) is None:
            said.append(invalid(here, None, "invalid label selector."))
    return said


def _rules(obj: Obj, *, namespaced: bool) -> list[Cause]:
    said: list[Cause] = []
    for index, rule in enumerate(items(obj, "rules")):
        here = f"rules[{index}]"
        if not items(rule, "verbs"):
            said.append(required(f"{here}.verbs", "verbs must contain at least one value"))
        if urls := items(rule, "nonResourceURLs"):
            where = f"{here}.nonResourceURLs"
            if namespaced:
                said.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
            if any(items(rule, field) for field in ("apiGroups", "resources", "resourceNames")):
                told = "rules cannot apply to both regular resources and non-resource URLs"
                said.append(invalid(where, urls, told))
            continue
        if not items(rule, "apiGroups"):
            said.append(required(f"{here}.apiGroups", "resource rules must supply at least one api group"))
        if not items(rule, "resources"):
            said.append(required(f"{here}.resources", "resource rules must supply at least one resource"))
    return said


def role_binding(obj: Obj) -> list[Cause]:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: Obj) -> list[Cause]:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Obj, kinds: tuple[str, ...], *, namespaced: bool) -> list[Cause]:
    ref = part(obj, "roleRef")
    said = supported("roleRef.apiGroup", text(ref, "apiGroup"), (_GROUP,))
    said += supported("roleRef.kind", text(ref, "kind"), kinds)
    said += named("roleRef.name", text(ref, "name"), names.path_segment)
    for index, subject in enumerate(items(obj, "subjects")):
        said += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return said


def _subject(subject: Obj, path: str, *, namespaced: bool) -> list[Cause]:
    name, group = text(subject, "name"), text(subject, "apiGroup")
    said = [] if name else [required(f"{path}.name")]
    match text(subject, "kind"):
        case "ServiceAccount":
            if name:
                said += ruled(f"{path}.name", name, names.subdomain)
            if group:
                said.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not namespaced and not text(subject, "namespace"):
                said.append(required(f"{path}.namespace"))
        case "User" | "Group":
            said += supported(f"{path}.apiGroup", group, (_GROUP,))
        case kind:
            said.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return said


def role_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return role(new)


def cluster_role_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return cluster_role(new)


def role_binding_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return role_binding(new) + _same_role(new, old)


def cluster_role_binding_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return cluster_role_binding(new) + _same_role(new, old)


def _same_role(new: Obj, old: Obj) -> list[Cause]:
    ref, was = part(new, "roleRef"), part(old, "roleRef")
    if all(text(ref, field) == text(was, field) for field in ("apiGroup", "kind", "name")):
        return []
    shown = {"APIGroup": text(ref, "apiGroup"), "Kind": text(ref, "kind"), "Name": text(ref, "name")}
    return [invalid("roleRef", shown, "cannot change roleRef")]
