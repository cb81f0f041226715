"""
Definitions that another field manager applied: they are not updated.

A cluster that runs upstream has its definitions, which another installation updates.
The fields of ours that they lack are reported. A controller whose status fields they
lack does not run: it could not record what it is about to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from lamina.core.crd.version import MARK
from lamina.objects import meta
from lamina.objects.types import Obj

_SERVERS = ("kube-apiserver", "kube-controller-manager")
_ANYTHING = "x-kubernetes-preserve-unknown-fields"


class ForeignDefinition(Struct, frozen=True, kw_only=True):
    """A definition of another field manager, and the fields of ours that it lacks."""

    name: str
    by: str
    lacks: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """Return the message about it."""
        kept = f"{self.name} is managed by {self.by} and is not updated"
        return (
            f"{kept}; fields that it does not declare are pruned: {', '.join(self.lacks)}"
            if self.lacks
            else kept
        )

    def misses(self, needed: Sequence[str]) -> tuple[str, ...]:
        """Return which of some fields it lacks."""
        return missing(self.lacks, needed)


def foreign(found: Obj, wanted: Obj, manager: str) -> ForeignDefinition | None:
    """Return a definition of another field manager, or None where ours applied it."""
    fields = meta.metadata(found).get("managedFields") or ()
    stated = any(one.get("manager") == manager and one.get("operation") == "Apply" for one in fields)
    if stated or MARK in meta.annotations(found):
        return None
    makers = (str(one.get("manager") or "") for one in fields if not one.get("subresource"))
    by = next((one for one in makers if one and one not in _SERVERS), "another manager")
    return ForeignDefinition(name=meta.name(found), by=by, lacks=lacking(found, wanted))


def lacking(found: Obj, wanted: Obj) -> tuple[str, ...]:
    """Return the outermost fields that the wanted definition has and the found one lacks."""
    return tuple(dict.fromkeys(_lacking(found, wanted)))


def missing(lacks: Sequence[str], needed: Sequence[str]) -> tuple[str, ...]:
    """Return which of the needed fields are among the lacking ones, or inside of one."""
    return tuple(
        field for field in needed if any(field == lost or field.startswith(f"{lost}.") for lost in lacks)
    )


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
    """Yield the outermost fields that the wanted schema has and the found one lacks."""
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
