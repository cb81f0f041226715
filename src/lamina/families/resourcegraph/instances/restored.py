"""The instance that a rollback to an input revision writes, and whether an instance is it by now."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from lamina.families.resourcegraph.instances.effective_revision import effective_revision
from lamina.families.resourcegraph.instances.input_revisions import InputRevision
from lamina.families.resourcegraph.instances.instance_spec import is_equal
from lamina.families.resourcegraph.instances.resolve import situation
from lamina.families.resourcegraph.instances.view import View
from lamina.families.resourcegraph.labels import PIN, ROLLBACK_INPUT, ROLLBACK_SCOPE
from lamina.graph.graph import Graph
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.numbers import positive
from lamina.objects.types import Made, Obj

PAIR, SPEC = "pair", "spec"


class Request(NamedTuple):
    """The rollback that an instance is annotated with."""

    stated: str
    """The input revision as the annotation states it."""
    scope: str
    """What is to be restored: the pair of spec and revision, or the spec alone."""

    @property
    def number(self) -> int:
        """Return the number of the input revision; 0 where the annotation states none."""
        return positive(self.stated)


def request(view: View) -> Request | None:
    """Return the rollback that is asked for."""
    annotations = meta.annotations(view.obj)
    stated = annotations.get(ROLLBACK_INPUT)
    return None if stated is None else Request(stated, annotations.get(ROLLBACK_SCOPE) or PAIR)


def restored(view: View, found: InputRevision, scope: str) -> Made:
    """Return the instance with the spec of an input revision, pinned to its revision where it would get another."""
    gone = (ROLLBACK_INPUT, ROLLBACK_SCOPE)
    annotations = {key: value for key, value in meta.annotations(view.obj).items() if key not in gone}
    if scope == PAIR:
        # A gate or a policy may keep it from the current revision.
        unpinned = effective_revision(replace(situation(view), pin=None))
        if found.revision == view.current == unpinned.number:
            annotations.pop(PIN, None)
        else:
            annotations[PIN] = str(found.revision)
    return {**meta.with_metadata(view.obj, annotations=annotations), "spec": found.spec or {}}


def is_unchanged(view: View, wanted: Obj) -> bool:
    """Say whether an instance has the spec and the pin that are to be restored already."""
    pins = (meta.annotations(one).get(PIN) for one in (wanted, view.obj))
    return is_same(wanted["spec"], view.obj.get("spec") or {}) and len(set(pins)) == 1


def message_of(found: InputRevision, scope: str) -> str:
    """Return the message of a rollback; it names the input revision and what of it is restored."""
    if scope == SPEC:
        return f"restored the spec of input revision {found.number}"
    return f"restored input revision {found.number} (RGD revision {found.revision})"


def has_become(view: View, message: str, revision: int, graph: Graph | None) -> bool:
    """Say whether an instance, which is on a revision, is what the rollback with this message was to restore."""
    spec: Obj = view.obj.get("spec") or {}
    return any(
        one.spec is not None
        and message == message_of(one, scope)
        and (scope == SPEC or one.revision == revision)
        and (is_same(spec, one.spec) or (graph is not None and is_equal(graph, one.spec, spec)))
        for one, scope in product(view.inputs, (PAIR, SPEC))
    )
