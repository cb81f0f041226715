"""Rights, gathered: who may do what with which resources, as rules of a role."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from lamina.objects.types import Made

_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


class Rights(Struct):
    """What something needs, and in words what cannot be known beforehand."""

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
        """Take up what somebody else needs."""
        for (group, resource, names), verbs in other._verbs.items():
            self.add(group, (resource,), tuple(verbs), names=names)
        for words in other.notes:
            self.note(words)

    def allow(self, group: str, resource: str, verb: str) -> bool:
        """Say whether something may be done, to any object at all."""
        return verb in self._verbs.get((group, resource, ()), ())

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
