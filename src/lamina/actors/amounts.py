"""Amounts of resources as schedulers count them: whole thousandths, so that sums are exact and quick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from lamina.objects.types import Obj

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


def counted(amounts: Mapping[str, object] | None) -> dict[str, int]:
    """Return amounts by the name of the resource, in thousandths."""
    return {name: thousandths(str(amount)) for name, amount in (amounts or {}).items()}


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two sets of amounts."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(set(other) - set(one)))}


def requested(spec: Obj) -> dict[str, int]:
    """
    Return what a pod asks a node for.

    Containers run at once; init containers run one by one before them, beside
    those of them that keep running, and matter where they need more.
    """
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    if not any((one.get("resources") or {}).get("requests") for one in (spec, *containers)):
        return counted(spec.get("overhead"))
    running = _total(spec.get("containers") or ())
    staying: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            staying = added(staying, own)
            most = _larger(most, staying)
        else:
            most = _larger(most, added(staying, own))
    needed = _larger(added(running, staying), most)
    whole = (spec.get("resources") or {}).get("requests")
    if whole:
        needed = {**needed, **counted(whole)}
    return added(needed, counted(spec.get("overhead")))


def _requests(container: Obj) -> dict[str, int]:
    return counted((container.get("resources") or {}).get("requests"))


def _total(containers: Iterable[Obj]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        total = added(total, _requests(container))
    return total


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *(set(other) - set(one)))}
