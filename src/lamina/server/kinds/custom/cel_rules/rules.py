"""
The rules of a schema, and their violations by an object or an update.

There are two paths. The fast path only finds out whether every rule holds, which is
mostly the case. The slow path follows kube-apiserver, counts the cost and computes
messages; it runs if the fast path found a violation, or if the rules might exceed the
budget.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from lamina.cel.cost.limits import PER_OBJECT
from lamina.errors import Cause
from lamina.server.kinds.custom.cel_rules.fast_path import FastCheck, NeedsSlowPath, root_of
from lamina.server.kinds.custom.cel_rules.slow_path import SlowCheck
from lamina.server.kinds.custom.document import Document
from lamina.server.kinds.custom.ratchet import Link


class RuleResult(NamedTuple):
    """The violations, and those that were ratcheted."""

    causes: list[Cause]
    excused: list[Cause]


_CLEAR: Final = RuleResult([], [])


class Rules:
    """All rules of a schema."""

    __slots__ = ("_document", "_root")

    def __init__(self, document: Document, *, resource: bool = True) -> None:
        self._document = document
        self._root = root_of(document, resource=resource)

    def validate(
        self,
        new: Any,
        old: Any = None,
        path: str = "",
        *,
        ratchets: bool = True,
        budget: int = PER_OBJECT,
    ) -> RuleResult:
        """
        Return the violations of an object or an update.

        `path` is the path of the object inside another, or empty; `budget` is the cost limit
        of all rules together.
        """
        if self._root is None:
            return _CLEAR
        try:
            FastCheck(budget).check(self._root, new, old)
        except NeedsSlowPath:
            slow = SlowCheck(budget)
            link = Link(self._document, new, old) if old is not None and ratchets else None
            slow.check(self._root, new, old, path, link)
            return RuleResult(slow.causes, slow.excused)
        return _CLEAR
