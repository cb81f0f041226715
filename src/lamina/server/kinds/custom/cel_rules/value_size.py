"""
The sizes of the values in one object.

The cost of a rule is estimated for the largest possible object. For the given object the
same estimate is mostly far lower, and then the cost need not be counted during
evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.cel.cost.size import CostNode, Estimate, SizeEstimator
from lamina.cel.schema import unescape


def sizes_in(variables: Mapping[str, Any]) -> SizeEstimator:
    """Return the function that measures the values at a path from a variable."""

    def sizes(node: CostNode) -> Estimate | None:
        if not node.path or node.path[0] not in variables:
            return None
        found = [variables[node.path[0]]]
        for step in node.path[1:]:
            found = _below(found, step)
        return Estimate(0, max(map(_size, found), default=0))

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
    # A text that is converted, for example to bytes or a time, is never larger than the text.
    return len(value) if isinstance(value, str | list | dict) else 1
