"""
Definitions that somebody else made, and what becomes of them.

A kind of ours may be somebody else's too: a cluster that runs the original has
its definitions, kept up to date by whoever installed it. Those are left alone,
and what they do not know is said. Where a controller could not write down what
it means to do, it must not do it: then it does not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from lamina.core.installing import MARK
from lamina.objects import meta
from lamina.objects.types import Obj

_SERVERS = ("kube-apiserver", "kube-controller-manager")
_ANYTHING = "x-kubernetes-preserve-unknown-fields"


class Foreign(Struct, frozen=True, kw_only=True):
    """A definition of somebody else's: whose, and which fields of ours it does not know."""

    name: str
    by: str
    lacks: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """Return what is to be said about it."""
        left = f"{self.name} was made by {self.by} and is left alone"
        return f"{left}; what it does not know is lost: {', '.join(self.lacks)}" if self.lacks else left

    def misses(self, needed: Sequence[str]) -> tuple[str, ...]:
        """Return which of some fields it cannot hold."""
        return tuple(
            field
            for field in needed
            if any(field == lost or field.startswith(f"{lost}.") for lost in self.lacks)
        )


def foreign(found: Obj, wanted: Obj, manager: str) -> Foreign | None:
    """Return what is to be known of a definition that is there, or None where it was stated under our name."""
    fields = meta.metadata(found).get("managedFields") or ()
    stated = any(one.get("manager") == manager and one.get("operation") == "Apply" for one in fields)
    if stated or MARK in meta.annotations(found):
        return None
    makers = (str(one.get("manager") or "") for one in fields if not one.get("subresource"))
    by = next((one for one in makers if one and one not in _SERVERS), "somebody else")
    return Foreign(name=meta.name(found), by=by, lacks=tuple(dict.fromkeys(_lacking(found, wanted))))


def _lacking(found: Obj, wanted: Obj) -> Iterator[str]:
    theirs = {one.get("name"): one for one in (found.get("spec") or {}).get("versions") or ()}
    for version in (wanted.get("spec") or {}).get("versions") or ():
        there = theirs.get(version["name"])
        if there is not None:
            yield from _missing(_schema(there), _schema(version), "")
        elif version.get("storage"):
            yield f"version {version['name']}"


def _schema(version: Obj) -> Obj:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {_ANYTHING: True}


def _missing(found: Obj, wanted: Obj, path: str) -> Iterator[str]:
    """Yield the fields that one schema has and the other has not, the outermost of each."""
    if found.get(_ANYTHING):
        return
    for name, below in (wanted.get("properties") or {}).items():
        there = (found.get("properties") or {}).get(name)
        if there is None:
            yield f"{path}{name}"
        else:
            yield from _missing(there, below, f"{path}{name}.")
    for inner, mark in (("items", "[]"), ("additionalProperties", "*")):
        both = found.get(inner), wanted.get(inner)
        if isinstance(both[0], Mapping) and isinstance(both[1], Mapping):
            yield from _missing(both[0], both[1], f"{path.removesuffix('.')}{mark}.")
