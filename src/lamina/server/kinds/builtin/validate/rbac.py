"""Roles and role bindings."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import invalid, not_supported, required
from lamina.server.kinds.builtin.validate.labels import compiled, label_selector
from lamina.server.kinds.builtin.validate.parts import items, named, part, ruled, supported, text

_GROUP = "rbac.authorization.k8s.io"


def role(obj: Obj) -> list[Cause]:
    return _rules(obj, namespaced=True)


def cluster_role(obj: Obj) -> list[Cause]:
    causes = _rules(obj, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return causes
    selectors = items(aggregation, "clusterRoleSelectors")
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        causes.append(required("aggregationRule.clusterRoleSelectors", detail))
    for index, selector in enumerate(selectors):
        item_path = f"aggregationRule.clusterRoleSelectors[{index}]"
        causes += label_selector(selector, item_path)
        if compiled(selector) is None:
            causes.append(invalid(item_path, None, "invalid label selector."))
    return causes


def _rules(obj: Obj, *, namespaced: bool) -> list[Cause]:
    causes: list[Cause] = []
    for index, rule in enumerate(items(obj, "rules")):
        item_path = f"rules[{index}]"
        if not items(rule, "verbs"):
            causes.append(required(f"{item_path}.verbs", "verbs must contain at least one value"))
        if urls := items(rule, "nonResourceURLs"):
            where = f"{item_path}.nonResourceURLs"
            if namespaced:
                causes.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
            if any(items(rule, field) for field in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                causes.append(invalid(where, urls, detail))
            continue
        if not items(rule, "apiGroups"):
            causes.append(
                required(f"{item_path}.apiGroups", "resource rules must supply at least one api group")
            )
        if not items(rule, "resources"):
            causes.append(
                required(f"{item_path}.resources", "resource rules must supply at least one resource")
            )
    return causes


def role_binding(obj: Obj) -> list[Cause]:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: Obj) -> list[Cause]:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Obj, kinds: tuple[str, ...], *, namespaced: bool) -> list[Cause]:
    ref = part(obj, "roleRef")
    causes = supported("roleRef.apiGroup", text(ref, "apiGroup"), (_GROUP,))
    causes += supported("roleRef.kind", text(ref, "kind"), kinds)
    causes += named("roleRef.name", text(ref, "name"), names.path_segment)
    for index, subject in enumerate(items(obj, "subjects")):
        causes += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return causes


def _subject(subject: Obj, path: str, *, namespaced: bool) -> list[Cause]:
    name, group = text(subject, "name"), text(subject, "apiGroup")
    causes = [] if name else [required(f"{path}.name")]
    match text(subject, "kind"):
        case "ServiceAccount":
            if name:
                causes += ruled(f"{path}.name", name, names.subdomain)
            if group:
                causes.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not namespaced and not text(subject, "namespace"):
                causes.append(required(f"{path}.namespace"))
        case "User" | "Group":
            causes += supported(f"{path}.apiGroup", group, (_GROUP,))
        case kind:
            causes.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return causes


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
