"""
What a writer leaves out, filled in.

Each module here has the rules of one topic as a table, struct by struct. The
walk to them is made from what the structs say of their fields: a struct's own
rule first, then the values its fields are marked with, then whatever is inside
it. Values are expected as decoding leaves them: a zero that may be left out is
not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from lamina.merge.schema import MISSING
from lamina.objects.types import Made
from lamina.server.builtin.defaults import (
    admission,
    autoscaling,
    extensions,
    flowcontrol,
    networking,
    pods,
    policies,
    resources,
    storage,
    workloads,
)
from lamina.server.builtin.structs import fields, is_struct, meaning

Rule = Callable[[Made], None]

RULES: Final[Mapping[str, Rule]] = {
    **pods.RULES,
    **workloads.RULES,
    **networking.RULES,
    **storage.RULES,
    **resources.RULES,
    **autoscaling.RULES,
    **policies.RULES,
    **admission.RULES,
    **extensions.RULES,
    **flowcontrol.RULES,
}


def default(key: str, obj: Made) -> None:
    """Fill in what is missing in an object of a kind, in place."""
    rule = _rule(key)
    if rule is not None:
        rule(obj)


@cache
def _rule(key: str) -> Rule | None:
    """Return everything there is to do for a struct; None where that is nothing."""
    if not _concerned(key, frozenset()):
        return None
    own = RULES.get(key)
    marked = [(field.name, field.default) for field in fields(key) if _is_marked(field.type, field.default)]
    inner: dict[str, Callable[[Any], None]] = {}
    for field in fields(key):
        below = _below(field.type)
        if below is not None:
            inner[field.name] = below

    def rule(obj: Made) -> None:
        if own is not None:
            own(obj)
        for name, value in marked:
            if obj.get(name) is None:
                obj[name] = value
        if inner:
            for name, value in obj.items():
                below = inner.get(name)
                if below is not None and value:
                    below(value)

    return rule


def _below(go_type: str) -> Callable[[Any], None] | None:
    known = meaning(go_type.removeprefix("*"))
    if is_struct(known):
        below = _rule(known)
        if below is None or known == "":
            return None
        return below if go_type.startswith("*") or known not in _EMPTY_MATTERS else below
    element = meaning(known.partition("]")[2]) if known.startswith(("[]", "map[")) else ""
    each = _rule(element) if element and is_struct(element) else None
    if each is None:
        return None
    if known.startswith("map["):
        return lambda values: [each(value) for value in values.values()] and None
    return lambda values: [each(value) for value in values] and None
