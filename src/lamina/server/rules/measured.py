"""
How large the values of one object are.

What a rule may cost is estimated for the largest object there can be. For the
object at hand the same estimate is nearly always far smaller, and then nobody has
to count while the rule is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.cel.cost.size import CostNode, Sizes, Span
from lamina.cel.schema import unescape


def sizes_in(variables: Mapping[str, Any]) -> Sizes:
    """Return the sizes of what a path from one of some variables leads to."""

    def sizes(node: CostNode) -> Span | None:
        if not node.path or node.path[0] not in variables:
            return None
        found = [variables[node.path[0]]]
        for step in node.path[1:]:
            found = _below(found, step)
        return Span(0, max(map(_size, found), default=0))

    return sizes


def _below(found: list[Any], step: str) -> list[Any]:
    if step in ("@items", "@values"):
        lists = [part for one in found if isinstance(one, list) for part in one]
        return lists + [part for one in found if isinstance(one, dict) for part in one.values()]
    if step == "@keys":
        return [key for one in found if isinstance(one, dict) for key in one]
    if step == "@indices":
        return []
    key = unescape(step) or step
    names = (key, step) if key != step else (key,)
    return [one[name] for one in found if isinstance(one, dict) for name in names if name in one]


def _size(value: Any) -> int:
    # A value that is read as something else, as texts are that hold bytes or a time, is never longer than its text.
    return len(value) if isinstance(value, str | list | dict) else 1
