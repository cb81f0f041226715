"""
Templates of stages: data with forms for values that depend on the object.

    $now                               the current time, in whole seconds
    {$from: EXPRESSION, $or: ELSE}     the value of an expression; ELSE, or nothing, where there is none
    {$text: "image {container.image}"} a string with the values of the expressions in braces
    {$number: TEMPLATE}                a string parsed as an integer
    {$sum: [TEMPLATE, ...]}            a sum of integers
    {$each: EXPRESSION, $give: TEMPLATE}  a list: the template for each selected `item`
    {$address: 10.244.0.0/16}          an address of a network, derived from the object's uid

A field without a value is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.actors.stages.path import Expression, parse
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.times import stamp
from lamina.objects.types import Obj

NOTHING = object()
"""The result of a template without a value."""

FORMS = ("$from", "$text", "$number", "$sum", "$each", "$address")
ROOTS = ("container", "item")

_HOLE = re.compile(r"\{([^{}]+)\}")


class TemplateError(Exception):
    """An invalid template, with the path and the reason."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


class Scope(Struct, frozen=True):
    """The data of a template: an object, one of its containers, an item of a list, and the time."""

    obj: Obj
    now: datetime
    container: Obj | None = None
    item: Any = None

    @property
    def roots(self) -> Mapping[str, Any]:
        return {"": self.obj, "container": self.container, "item": self.item}


Template: TypeAlias = Callable[[Scope], Any]


def compiled(data: Any, where: str) -> Template:
    """Return a template compiled to a function; raises TemplateError for an invalid one."""
    if isinstance(data, str):
        if data == "$now":
            return lambda scope: stamp(scope.now)
        if data.startswith("$"):
            raise TemplateError(where, f"there is no form {data}")
        if "{{" in data:
            raise TemplateError(where, "Go templates are not supported; see docs/concepts/workloads.md")
        return lambda scope: data
    if isinstance(data, list):
        return _listed(data, where)
    if isinstance(data, Mapping):
        forms = [key for key in data if isinstance(key, str) and key.startswith("$")]
        return _form(data, forms, where) if forms else _mapped(data, where)
    return lambda scope: data


def _mapped(data: Mapping[str, Any], where: str) -> Template:
    fields = [(str(key), compiled(value, f"{where}.{key}")) for key, value in data.items()]

    def give(scope: Scope) -> Any:
        made = {}
        for key, template in fields:
            value = template(scope)
            if value is not NOTHING:
                made[key] = value
        return made

    return give


def _listed(data: list[Any], where: str) -> Template:
    items = [compiled(value, f"{where}[{number}]") for number, value in enumerate(data)]
    return lambda scope: [value for item in items if (value := item(scope)) is not NOTHING]


def _form(data: Mapping[str, Any], forms: list[str], where: str) -> Template:
    allowed = {"$from": {"$or"}, "$each": {"$give"}}
    form = next((one for one in forms if one in FORMS), None)
    if form is None:
        raise TemplateError(where, f"there is no form {forms[0]}; forms are {', '.join(FORMS)} and $now")
    stray = sorted(str(key) for key in data.keys() - {form} - allowed.get(form, set()))
    if stray:
        raise TemplateError(where, f"{form} takes no {', '.join(stray)}")
    value = data[form]
    match form:
        case "$from":
            return _from(expression(value, where), compiled(data["$or"], where) if "$or" in data else None)
        case "$text":
            return text(value, where)
        case "$number":
            return _number(compiled(value, where))
        case "$sum":
            if not isinstance(value, list):
                raise TemplateError(where, f"$sum takes a list, got {value!r}")
            return _sum([compiled(one, where) for one in value])
        case "$each":
            if "$give" not in data:
                raise TemplateError(where, "$each needs $give")
            return _each(expression(value, where), compiled(data["$give"], f"{where}.$give"))
        case _:
            return address(value, where)


def expression(data: Any, where: str) -> Expression:
    """Return an expression; raises TemplateError for an invalid one."""
    try:
        return parse(str(data), ROOTS)
    except ValueError as invalid:
        raise TemplateError(where, str(invalid)) from None


def text(data: Any, where: str) -> Template:
    """Return a string with expressions in braces as a template."""
    if not isinstance(data, str):
        raise TemplateError(where, f"expected a string, got {data!r}")
    if "{{" in data:
        raise TemplateError(where, "Go templates are not supported; see docs/concepts/workloads.md")
    parts: list[str | Expression] = []
    at = 0
    for hole in _HOLE.finditer(data):
        parts += [data[at : hole.start()], expression(hole[1], where)]
        at = hole.end()
    parts.append(data[at:])
    if len(parts) == 1:
        return lambda scope: data

    def give(scope: Scope) -> str:
        roots = scope.roots
        return "".join(part if isinstance(part, str) else _shown(part.first(roots)) for part in parts)

    return give


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _from(found: Expression, default: Template | None) -> Template:
    def give(scope: Scope) -> Any:
        value = found.first(scope.roots)
        if value is not None:
            return value
        return default(scope) if default is not None else NOTHING

    return give


def _number(inner: Template) -> Template:
    def give(scope: Scope) -> Any:
        return _whole(inner(scope))

    return give


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _sum(parts: list[Template]) -> Template:
    return lambda scope: sum(_whole(part(scope)) for part in parts)


def _each(found: Expression, inner: Template) -> Template:
    def give(scope: Scope) -> list[Any]:
        items = [Scope(scope.obj, scope.now, scope.container, item) for item in found.values(scope.roots)]
        return [value for item in items if (value := inner(item)) is not NOTHING]

    return give


def address(data: Any, where: str) -> Template:
    """Return a template for an address of a network, always the same for one object."""
    try:
        network = IPv4Network(str(data))
    except ValueError as invalid:
        raise TemplateError(where, str(invalid)) from None
    room = max(1, network.num_addresses - 2)
    return lambda scope: str(network[1 + int(digest(["address", meta.uid(scope.obj)])[:12], 16) % room])
