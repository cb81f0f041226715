"""Replaces nodes by their resolved names."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_

from msgspec.structs import replace

from lamina.cel.ast import Call, Comprehension, Expr, MakeList, MakeMap, MakeStruct, Select


def with_resolved_names(expr: Expr, resolved: Mapping[int, Expr]) -> Expr:
    """Return an expression with the nodes in `resolved` replaced; the rest is shared."""

    def resolve(node: Expr) -> Expr:
        found = resolved.get(node.id, node)
        match found:
            case Select():
                operand = resolve(found.operand)
                return found if operand is found.operand else replace(found, operand=operand)
            case Call():
                target = None if found.target is None else resolve(found.target)
                args = tuple([resolve(arg) for arg in found.args])
                if target is found.target and all(map(is_, args, found.args)):
                    return found
                return replace(found, target=target, args=args)
            case MakeList():
                return replace(found, items=tuple([resolve(item) for item in found.items]))
            case MakeStruct():
                return replace(
                    found, fields=tuple([replace(f, value=resolve(f.value)) for f in found.fields])
                )
            case MakeMap():
                entries = [replace(e, key=resolve(e.key), value=resolve(e.value)) for e in found.entries]
                return replace(found, entries=tuple(entries))
            case Comprehension():
                return replace(
                    found,
                    iter_range=resolve(found.iter_range),
                    accu_init=resolve(found.accu_init),
                    loop_condition=resolve(found.loop_condition),
                    loop_step=resolve(found.loop_step),
                    result=resolve(found.result),
                )
            case _:
                return found

    return resolve(expr)
