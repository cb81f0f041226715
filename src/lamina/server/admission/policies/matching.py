"""Which requests a policy or binding matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.kinds.kind import Kind

NamespaceLabels = Callable[[str], Any]
Versions = Callable[[Kind], Sequence[Kind]]


class Matcher:
    """A compiled `matchConstraints` or `matchResources`."""

    __slots__ = ("_exact", "_excluded", "_namespaces", "_objects", "_rules")

    def __init__(self, written: Obj) -> None:
        self._namespaces = from_object(written.get("namespaceSelector") or {})
        self._objects = from_object(written.get("objectSelector") or {})
        self._rules: Sequence[Obj] = written.get("resourceRules") or ()
        self._excluded: Sequence[Obj] = written.get("excludeResourceRules") or ()
        self._exact = written.get("matchPolicy") == "Exact"

    def match(self, attributes: Attributes, labels_of: NamespaceLabels, versions: Versions) -> Kind | None:
        """Return the version of the kind that matches a request, None if none does."""
        if not self._in_namespace(attributes, labels_of) or not self._of_object(attributes):
            return None
        if self._excluded and self._match_rules(self._excluded, attributes, versions) is not None:
            return None
        return self._match_rules(self._rules, attributes, versions) if self._rules else attributes.kind

    def may_match(self, kinds: Sequence[Kind], operation: str, subresource: str) -> bool:
        """Return whether any such request for one of these kinds may match; the result is cached by the caller."""
        return not self._rules or any(
            _matches_field(rule, "operations", operation)
            and _matches_field(rule, "apiGroups", kind.group)
            and any(_is_resource(one, kind.plural, subresource) for one in rule.get("resources") or ())
            for rule in self._rules
            for kind in kinds
        )

    def _in_namespace(self, attributes: Attributes, labels_of: NamespaceLabels) -> bool:
        if self._namespaces.is_everything:
            return True
        if attributes.kind.bucket == "namespaces":
            # A Namespace object is matched by its own labels, including those that the write sets.
            found = attributes.new if attributes.new is not None else attributes.old
            return self._namespaces.matches((found or {}).get("metadata", {}).get("labels"))
        return not attributes.namespace or self._namespaces.matches(labels_of(attributes.namespace))

    def _of_object(self, attributes: Attributes) -> bool:
        if self._objects.is_everything:
            return True
        return any(
            _matches(self._objects, obj) for obj in (attributes.new, attributes.old) if obj is not None
        )

    def _match_rules(self, rules: Sequence[Obj], attributes: Attributes, versions: Versions) -> Kind | None:
        for rule in rules:
            if _matches_rule(rule, attributes, attributes.kind):
                return attributes.kind
        if self._exact:
            return None
        others = [one for one in versions(attributes.kind) if one is not attributes.kind]
        for rule in rules if others else ():
            for other in others:
                if _matches_rule(rule, attributes, other):
                    return other
        return None


def _matches(selector: LabelSelector, obj: Obj) -> bool:
    return selector.matches(obj["metadata"].get("labels"))


def _matches_rule(rule: Obj, attributes: Attributes, kind: Kind) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        _matches_field(rule, "operations", attributes.operation)
        and _matches_field(rule, "apiGroups", kind.group)
        and _matches_field(rule, "apiVersions", kind.version)
        and any(_is_resource(one, kind.plural, attributes.subresource) for one in rule.get("resources") or ())
        and _in_scope(rule.get("scope") or "*", attributes)
        and (not names or attributes.name in names)
    )


def _matches_field(rule: Obj, field: str, wanted: str) -> bool:
    found = rule.get(field) or ()
    return "*" in found or wanted in found


def _is_resource(written: str, plural: str, subresource: str) -> bool:
    resource, _, below = written.partition("/")
    return resource in ("*", plural) and below in ("*", subresource)


def _in_scope(scope: str, attributes: Attributes) -> bool:
    if scope == "*":
        return True
    return (scope == "Namespaced") == (bool(attributes.namespace) and attributes.kind.bucket != "namespaces")
