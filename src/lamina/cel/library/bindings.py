"""The bindings extension: a name for a value, `cel.bind(name, value, body)`."""

from __future__ import annotations

from typing import Final

from lamina.cel.declarations import Library
from lamina.cel.macros import BINDINGS as MACROS

BINDINGS: Final = Library(name="bindings", macros=MACROS)
