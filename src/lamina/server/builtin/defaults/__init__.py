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
    resources,
    storage,
    workloads,
)
from lamina.server.builtin.structs import Field, fields, is_struct, meaning

Rule = Callable[[Made], None]

RULES: Final[Mapping[str, Rule]] = {
    **pods.RULES,
    **workloads.RULES,
    **networking.RULES,
    **storage.RULES,
    **resources.RULES,
    **autoscaling.RULES,
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
    marked = [(field.name, field.default) for field in fields(key) if _is_marked(field)]
    inner = {field.name: below for field in fields(key) if (below := _below(field.type)) is not None}
    if own is not None and not marked and not inner:
        return own
    few = list(inner.items()) if len(inner) <= _FEW else None

    def rule(obj: Made) -> None:
        if own is not None:
            own(obj)
        for name, value in marked:
            if obj.get(name) is None:
                obj[name] = value
        if few is not None:
            for name, below in few:
                if (value := obj.get(name)) is not None:
                    below(value)
            return
        for name, value in obj.items():
            if value is not None and name in inner:
                inner[name](value)

    return rule


_FEW: Final = 4
"""Up to how many fields are looked up one by one; beyond that it is quicker to look at those that are there."""


def _below(go_type: str) -> Callable[[Any], None] | None:
    """Return what there is to do for the value of a field: a struct, or structs in a list or map."""
    struct = _struct_in(go_type)
    each = _rule(struct) if struct else None
    known = meaning(go_type.removeprefix("*"))
    if each is None or known == struct:
        return each

    def for_each(values: Any) -> None:
        for value in values.values() if type(values) is dict else values:
            each(value)

    return for_each


def _struct_in(go_type: str) -> str:
    """Return the struct that a type is, or is a list or map of; empty where there is none."""
    known = meaning(go_type.removeprefix("*"))
    if known.startswith(("[]", "map[")):
        known = meaning(known.partition("]")[2].removeprefix("*"))
    return known if is_struct(known) else ""


def _is_marked(field: Field) -> bool:
    """Return whether a field is marked with a default that shows; a zero of something that is no pointer does not."""
    return field.default is not MISSING and (field.type.startswith("*") or bool(field.default))


def _concerned(key: str, above: frozenset[str]) -> bool:
    """Return whether a struct, or anything inside it, has a rule or a marked field."""
    if key in above:
        return False
    return (
        key in RULES
        or any(_is_marked(field) for field in fields(key))
        or any(
            _concerned(struct, above | {key}) for field in fields(key) if (struct := _struct_in(field.type))
        )
    )
