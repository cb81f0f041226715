"""The tree with its names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_

from msgspec.structs import replace

from lamina.cel.ast import Call, Comprehension, Expr, MakeList, MakeMap, MakeStruct, Select


def with_meaning(expr: Expr, meant: Mapping[int, Expr]) -> Expr:
    """Return an expression in which the nodes named in `meant` are replaced; the rest is shared."""

    def again(node: Expr) -> Expr:
        found = meant.get(node.id, node)
        match found:
            case Select():
                operand = again(found.operand)
                return found if operand is found.operand else replace(found, operand=operand)
            case Call():
                target = None if found.target is None else again(found.target)
                args = tuple([again(arg) for arg in found.args])
                if target is found.target and all(map(is_, args, found.args)):
                    return found
                return replace(found, target=target, args=args)
            case MakeList():
                return replace(found, items=tuple([again(item) for item in found.items]))
            case MakeStruct():
                return replace(found, fields=tuple([replace(f, value=again(f.value)) for f in found.fields]))
            case MakeMap():
                entries = [replace(e, key=again(e.key), value=again(e.value)) for e in found.entries]
                return replace(found, entries=tuple(entries))
            case Comprehension():
                return replace(
                    found,
                    iter_range=again(found.iter_range),
                    accu_init=again(found.accu_init),
                    loop_condition=again(found.loop_condition),
                    loop_step=again(found.loop_step),
                    result=again(found.result),
                )
            case _:
                return found

    return again(expr)
