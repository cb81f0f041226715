"""RBAC rights, collected and written as the rules of a role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from lamina.objects.types import Made

_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


class Rights(Struct):
    """The rights that a process needs, with notes on those that are not known beforehand."""

    _verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(
        self, group: str, resources: Sequence[str], verbs: Sequence[str], *, names: Sequence[str] = ()
    ) -> None:
        for resource in resources:
            self._verbs.setdefault((group, resource, tuple(names)), set()).update(verbs)

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def join(self, other: Rights) -> None:
        """Add the rights of another."""
        for (group, resource, names), verbs in other._verbs.items():
            self.add(group, (resource,), tuple(verbs), names=names)
        for words in other.notes:
            self.note(words)

    def allow(self, group: str, resource: str, verb: str) -> bool:
        """Say whether a verb is allowed on all objects of a resource."""
        return verb in self._verbs.get((group, resource, ()), ())

    def readable(self) -> Rights:
        """Return the rights to read what these list, but no Secrets."""
        reads = Rights()
        for (group, resource, names), verbs in self._verbs.items():
            if "list" in verbs and not names and (group, resource) != ("", "secrets"):
                reads.add(group, (resource,), ("get", "list", "watch"))
        return reads

    def without(self, kinds: Iterable[tuple[str, str]]) -> Rights:
        """Return these rights without those on some kinds, given by group and resource."""
        gone, rest = set(kinds), Rights(notes=list(self.notes))
        for (group, resource, names), verbs in self._verbs.items():
            if (group, resource.partition("/")[0]) not in gone:
                rest.add(group, (resource,), tuple(verbs), names=names)
        return rest

    def rules(self) -> list[Made]:
        """Return the rules of a role, one for all resources of a group that need the same."""
        rules: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
        for (group, resource, names), verbs in sorted(self._verbs.items()):
            if names:
                verbs = verbs - self._verbs.get((group, resource, ()), set())
            if verbs:
                usual = (verb for verb in _ORDER if verb in verbs)
                ordered = (*usual, *sorted(verbs.difference(_ORDER)))
                rules.setdefault((group, ordered, names), []).append(resource)
        made: list[Made] = []
        for (group, ordered, names), resources in rules.items():
            rule: Made = {"apiGroups": [group], "resources": resources, "verbs": list(ordered)}
            made.append({**rule, "resourceNames": list(names)} if names else rule)
        return made


def plural(kind: str) -> str:
    """Return the resource of a kind, as its name suggests; only discovery has the exact one."""
    lower = kind.lower()
    if lower == "endpoints":
        return lower
    if lower.endswith(("s", "x", "ch")):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") and lower[-2:-1] not in tuple("aeiou") else f"{lower}s"
