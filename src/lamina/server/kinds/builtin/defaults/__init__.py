"""
Defaulting of built-in kinds.

Each module here has the rules of one topic, as a table by struct. Objects are walked
by their struct definitions: first the struct's own rule, then the defaults of its
fields, then nested structs. Values are expected as decoded: an omitted zero is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from lamina.merge.schema import MISSING
from lamina.objects.types import Made
from lamina.server.kinds.builtin.defaults import (
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
from lamina.server.kinds.builtin.structs import Field, fields, is_struct, meaning

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
    """Set the defaults of an object of a kind, in place."""
    rule = _rule(key)
    if rule is not None:
        rule(obj)


@cache
def _rule(key: str) -> Rule | None:
    """Return the complete rule of a struct, None if there is nothing to do."""
    if not _has_rules(key, frozenset()):
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
"""Up to this many fields are looked up one by one; beyond it, iterating over the present ones is faster."""


def _below(go_type: str) -> Callable[[Any], None] | None:
    """Return the rule for the value of a field: a struct, or structs in a list or map; None if there is none."""
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
    """Return the struct that a type is or contains as list or map items; empty if there is none."""
    known = meaning(go_type.removeprefix("*"))
    if known.startswith(("[]", "map[")):
        known = meaning(known.partition("]")[2].removeprefix("*"))
    return known if is_struct(known) else ""


def _is_marked(field: Field) -> bool:
    """Return whether a field has a default that is encoded; a zero that is omitted does not count."""
    return field.default is not MISSING and (field.type.startswith("*") or bool(field.default))


def _has_rules(key: str, above: frozenset[str]) -> bool:
    """Return whether a struct, or a struct inside it, has a rule or a default."""
    if key in above:
        return False
    return (
        key in RULES
        or any(_is_marked(field) for field in fields(key))
        or any(
            _has_rules(struct, above | {key}) for field in fields(key) if (struct := _struct_in(field.type))
        )
    )
