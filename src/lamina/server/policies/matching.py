"""Which requests a policy or a binding is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj
from lamina.server.kind import Kind
from lamina.server.policies.attempt import Attempt

NamespaceLabels = Callable[[str], Any]
Versions = Callable[[Kind], Sequence[Kind]]


class Matcher:
    """What a `matchConstraints` or `matchResources` says, ready to be asked."""

    __slots__ = ("_exact", "_excluded", "_namespaces", "_objects", "_rules")

    def __init__(self, written: Obj) -> None:
        self._namespaces = from_object(written.get("namespaceSelector") or {})
        self._objects = from_object(written.get("objectSelector") or {})
        self._rules: Sequence[Obj] = written.get("resourceRules") or ()
        self._excluded: Sequence[Obj] = written.get("excludeResourceRules") or ()
        self._exact = written.get("matchPolicy") == "Exact"

    def match(self, attempt: Attempt, labels_of: NamespaceLabels, versions: Versions) -> Kind | None:
        """Return the version of the kind by which a request is meant, or None if it is not."""
        if not self._in_namespace(attempt, labels_of) or not self._of_object(attempt):
            return None
        if self._excluded and self._ruled(self._excluded, attempt, versions) is not None:
            return None
        return self._ruled(self._rules, attempt, versions) if self._rules else attempt.kind

    def could(self, kinds: Sequence[Kind], operation: str, subresource: str) -> bool:
        """Say whether any request of this sort, to one of these kinds, may be meant; what is not is never looked at."""
        return not self._rules or any(
            _has(rule, "operations", operation)
            and _has(rule, "apiGroups", kind.group)
            and any(_is_resource(one, kind.plural, subresource) for one in rule.get("resources") or ())
            for rule in self._rules
            for kind in kinds
        )

    def _in_namespace(self, attempt: Attempt, labels_of: NamespaceLabels) -> bool:
        if self._namespaces.is_everything:
            return True
        if attempt.kind.bucket == "namespaces":
            # A namespace is known by its own labels, and by those it is getting.
            found = attempt.new if attempt.new is not None else attempt.old
            return self._namespaces.matches((found or {}).get("metadata", {}).get("labels"))
        return not attempt.namespace or self._namespaces.matches(labels_of(attempt.namespace))

    def _of_object(self, attempt: Attempt) -> bool:
        if self._objects.is_everything:
            return True
        return any(_matches(self._objects, obj) for obj in (attempt.new, attempt.old) if obj is not None)

    def _ruled(self, rules: Sequence[Obj], attempt: Attempt, versions: Versions) -> Kind | None:
        for rule in rules:
            if _is_about(rule, attempt, attempt.kind):
                return attempt.kind
        if self._exact:
            return None
        others = [one for one in versions(attempt.kind) if one is not attempt.kind]
        for rule in rules if others else ():
            for other in others:
                if _is_about(rule, attempt, other):
                    return other
        return None


def _matches(selector: LabelSelector, obj: Obj) -> bool:
    return selector.matches(obj["metadata"].get("labels"))


def _is_about(rule: Obj, attempt: Attempt, kind: Kind) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        _has(rule, "operations", attempt.operation)
        and _has(rule, "apiGroups", kind.group)
        and _has(rule, "apiVersions", kind.version)
        and any(_is_resource(one, kind.plural, attempt.subresource) for one in rule.get("resources") or ())
        and _in_scope(rule.get("scope") or "*", attempt)
        and (not names or attempt.name in names)
    )


def _has(rule: Obj, field: str, wanted: str) -> bool:
    found = rule.get(field) or ()
    return "*" in found or wanted in found


def _is_resource(written: str, plural: str, subresource: str) -> bool:
    resource, _, below = written.partition("/")
    return resource in ("*", plural) and below in ("*", subresource)


def _in_scope(scope: str, attempt: Attempt) -> bool:
    if scope == "*":
        return True
    return (scope == "Namespaced") == (bool(attempt.namespace) and attempt.kind.bucket != "namespaces")
