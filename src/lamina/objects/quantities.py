"""Quantities as objects write them: `250m`, `16Gi`, `2e3`."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

_BINARY = {suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@lru_cache(maxsize=4096)
def thousandths(quantity: str) -> int:
    """Return a quantity such as `250m` or `16Gi` in thousandths, rounded up; what is no quantity is nothing."""
    text = quantity.strip()
    try:
        if text[-2:] in _BINARY:
            amount = Fraction(text[:-2]) * _BINARY[text[-2:]]
        elif text[-1:] in _DECIMAL and not text[-1:].isdigit():
            amount = Fraction(text[:-1]) * Fraction(10) ** _DECIMAL[text[-1:]]
        else:
            amount = Fraction(text)
    except ValueError:
        return 0
    return -int((-amount * 1000) // 1)
