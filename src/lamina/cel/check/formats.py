"""Format strings that do not match their arguments: `'%d'.format(['a'])`."""

from __future__ import annotations

import re
from typing import Final

from lamina.cel.ast import Call, Checked, Expr, Literal, LiteralKind, MakeList, MakeMap
from lamina.cel.errors import Issue
from lamina.cel.types import Kind

_TEXTUAL: Final = frozenset(
    {
        *(Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP),
        *(Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL),
    }
)
_CLAUSES: Final = {
    "s": (
        _TEXTUAL,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
    ),
    "d": (frozenset({Kind.INT, Kind.UINT}), "decimal clause can only be used on integers"),
    "f": (frozenset({Kind.DOUBLE, Kind.STRING}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({Kind.DOUBLE, Kind.STRING}), "scientific clause can only be used on doubles"),
    "b": (frozenset({Kind.INT, Kind.UINT, Kind.BOOL}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({Kind.INT, Kind.UINT}), "octal clause can only be used on integers"),
}
_PRECISION: Final = re.compile(r"\.([0-9]*)")


def format_issue(call: Call, checked: Checked) -> Issue | None:
    """Return the error of a call of `format` with a literal string and arguments."""
    if call.function != "format" or not isinstance(call.target, Literal) or len(call.args) != 1:
        return None
    if call.target.kind is not LiteralKind.STRING or not isinstance(call.args[0], MakeList):
        return None
    # Go iterates over bytes, and prints each as the character with that number.
    text = str(call.target.value).encode("utf-8", "surrogatepass").decode("latin-1")
    args = call.args[0].items
    at = used = 0
    while (at := text.find("%", at)) >= 0:
        if text[at + 1 : at + 2] == "%":
            at += 2
            continue
        used += 1
        if at + 1 >= len(text):
            return Issue(call.at, "unexpected end of string")
        if used > len(args):
            return Issue(call.at, f"index {used - 1} out of range")
        at += 1
        precision = _PRECISION.match(text, at)
        if precision is not None:
            at = precision.end()
            message = _precision_error(precision.group(1), ended=at >= len(text))
            if message is not None:
                return Issue(
                    call.at, f"could not parse formatting clause: error while parsing precision: {message}"
                )
        clause = text[at]
        if clause.replace("X", "x") not in _CLAUSES:
            message = f'unrecognized formatting clause "{clause}"'
            return Issue(call.at, f"could not parse formatting clause: {message}")
        issue = _clause_issue(clause.replace("X", "x"), args[used - 1], checked)
        if issue is not None:
            return issue
        at += 1
    if len(args) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(args)})"
        return Issue(call.at, message)
    return None


def _precision_error(digits: str, *, ended: bool) -> str | None:
    if ended:
        return "could not find end of precision specifier"
    if digits and int(digits[:20]) < 2**63:
        return None
    why = "value out of range" if digits else "invalid syntax"
    return f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": {why}'


def _clause_issue(clause: str, arg: Expr, checked: Checked) -> Issue | None:
    kinds, message = _CLAUSES[clause]
    bad = _unprintable(arg, checked) if clause == "s" else arg
    if bad is None:
        return None
    found = checked.types[bad.id]
    if clause != "s" and (found.kind is Kind.DYN or found.kind in kinds):
        return None
    return Issue(bad.at, f"error during formatting: {message}, was given {found.name}")


def _unprintable(arg: Expr, checked: Checked) -> Expr | None:
    """Return the part of an argument that `%s` cannot format, if there is one."""
    kind = checked.types[arg.id].kind
    if kind is not Kind.DYN and kind not in _TEXTUAL:
        return arg
    inner: tuple[Expr, ...] = ()
    if isinstance(arg, MakeList):
        inner = arg.items
    elif isinstance(arg, MakeMap):
        inner = tuple(part for entry in arg.entries for part in (entry.key, entry.value))
    return next((bad for part in inner if (bad := _unprintable(part, checked)) is not None), None)
