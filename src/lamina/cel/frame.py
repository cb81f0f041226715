"""What the parser remembers of a bracket that is still open."""

from __future__ import annotations

from typing import Final

from lamina.cel.ast import Expr

RELATION: Final = 1
"""How tightly comparisons bind; sums and products bind tighter."""


class Frame:
    """
    An open bracket, or the `:` half of a conditional, and what has been read inside it.

    `depth`, `sums` and `relations` count the expressions, the sums and products, and
    the comparisons that are open around it. `operands` and `operators` are those of sums and comparisons; `ands` and
    `ors` are the terms and operators of the chains they stand in.
    """

    __slots__ = (
        "ands", "at", "depth", "function", "items", "kind", "operands", "operators", "optional", "ors", "prefix",
        "relations", "sums", "target", "targets",
    )  # fmt: skip

    def __init__(self, kind: str, at: int, depth: int, sums: int, relations: int) -> None:
        self.kind, self.at = kind, at
        self.depth, self.sums, self.relations = depth, sums, relations
        self.operands: list[Expr] = []
        self.operators: list[tuple[int, str, int]] = []
        self.ands: list[tuple[Expr, int]] = []
        self.ors: list[tuple[Expr, int]] = []
        self.prefix: tuple[str, int] | None = None
        self.items: list[Expr] = []
        self.optional: list[bool] = []
        self.target: Expr | None = None
        self.targets: list[tuple[int, str]] = []
        self.function = ""
