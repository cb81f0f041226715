"""
Invariants of definitions, checked after each write, whatever has failed before it.

They know the specs, the annotations and the live objects, and nothing of how the controller decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lamina.core.model.plan import Create, Delete, Patch, Replace
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.crash_explorer import Invariant, Write
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    CRD,
    DEFINITION_KIND,
    INPUT_KIND,
    REVISION_KIND,
)

Objects = Mapping[Ref, Made]


def revisions(objects: Objects, of: str = APP.name) -> list[Made]:
    """The revisions of a definition."""
    found = [obj for ref, obj in objects.items() if ref.kind == REVISION_KIND.kind]
    return [one for one in found if meta.labels(one)["kro.run/rgd-name"] == of]


def instances(objects: Objects) -> list[Made]:
    return [obj for ref, obj in objects.items() if ref.kind == "App"]


def _numbers(objects: Sequence[Obj]) -> list[int]:
    return [one["spec"]["revision"] for one in objects]


def _is_live(objects: Objects) -> bool:
    return APP in objects and not meta.is_deleting(objects[APP])


class _Published(NamedTuple):
    """A revision that is created, its definition, and the revisions that this has already."""

    revision: Obj
    definition: Obj
    others: list[Made]


def _published(write: Write) -> _Published | None:
    if not isinstance(write.action, Create) or write.action.ref.kind != REVISION_KIND.kind:
        return None
    name = meta.labels(write.action.obj)["kro.run/rgd-name"]
    definition = write.before[DEFINITION_KIND.ref("", name)]
    return _Published(write.action.obj, definition, revisions(write.before, name))


def numbers_have_no_gap_and_no_double(write: Write) -> None:
    if (made := _published(write)) is not None:
        number = made.revision["spec"]["revision"]
        issued = max(
            (made.definition.get("status") or {}).get("lastIssuedRevision") or 0, *_numbers(made.others), 0
        )
        assert number == issued + 1, f"revision {number} is created after {issued}"


def a_revision_is_the_content_of_its_definition(write: Write) -> None:
    if (made := _published(write)) is not None:
        for field in ("schema", "resources"):
            assert made.revision["spec"][field] == made.definition["spec"][field]


def content_is_not_published_twice(write: Write) -> None:
    if (made := _published(write)) is not None:
        newest = max(made.others, key=lambda one: one["spec"]["revision"], default=None)
        assert newest is None or newest["spec"]["resources"] != made.revision["spec"]["resources"]


def a_needed_revision_is_not_released(write: Write) -> None:
    """It may be deleted, by hand; it is gone only once no instance needs it."""
    if not _is_live(write.before):
        return
    left = _numbers(revisions(write.cluster.objects))
    gone = [one for one in _numbers(revisions(write.before)) if one not in left]
    needed = {number for one in instances(write.before) for number in _needs(one, write.before)}
    needed.add((write.before[APP].get("status") or {}).get("currentRevision") or 0)
    assert not needed.intersection(gone), f"revision {gone} is gone and needed"


def _needs(one: Obj, objects: Objects) -> list[int]:
    status = one.get("status") or {}
    pin = meta.annotations(one).get("kro.run/rgd-revision")
    return [
        *([int(pin)] if pin else []),
        *_newest_recorded(one, objects),
        *(status[name] for name in ("currentRGDRevision", "observedRGDRevision") if name in status),
    ]


def _newest_recorded(one: Obj, objects: Objects) -> list[int]:
    specs = [
        obj["spec"]
        for ref, obj in objects.items()
        if ref.kind == INPUT_KIND.kind and meta.is_controlled_by(obj, meta.uid(one))
    ]
    return [one["rgdRevision"] for one in sorted(specs, key=lambda one: int(one["inputRevision"]))[-1:]]


def the_current_revision_only_grows_and_is_served(write: Write) -> None:
    """Instances follow it: it exists, and the CRD is that of the revision."""
    after = write.cluster.objects.get(APP)
    if after is None or write.action.ref != APP or meta.is_deleting(after):
        return
    before = (write.before[APP].get("status") or {}).get("currentRevision") or 0
    now = (after.get("status") or {}).get("currentRevision") or 0
    assert now >= before
    if now != before:
        assert now in _numbers(revisions(write.cluster.objects))
        assert meta.annotations(write.cluster.objects[CRD])["kro.run/rgd-revision"] == str(now)


def a_spec_is_written_only_to_roll_back(write: Write) -> None:
    if write.action.ref == APP and isinstance(write.action, Replace | Patch) and APP in write.cluster.objects:
        before, after = write.before[APP], write.cluster.objects[APP]
        if before["spec"] != after["spec"]:
            assert "kro.run/rollback-to-revision" in meta.annotations(before)
            assert "kro.run/rollback-to-revision" not in meta.annotations(after)
            contents = [one["spec"]["resources"] for one in revisions(write.before)]
            assert after["spec"]["resources"] in contents


def instances_are_let_through_in_waves(write: Write) -> None:
    """With exponentiallyUpdated, the one with index i may move once 2^floor(log2 i) others have completed."""
    if write.action.ref.kind != REVISION_KIND.kind or isinstance(write.action, Create | Delete):
        return
    before, after = (one.get(write.action.ref) for one in (write.before, write.cluster.objects))
    if before is None or after is None:
        return
    admitted = set(_admitted(after)) - set(_admitted(before))
    number = after["spec"]["revision"]
    following = sorted((one for one in instances(write.before) if _follows(one)), key=_age)
    done = sum((one.get("status") or {}).get("observedRGDRevision") == number for one in following)
    for index, one in enumerate(following):
        if meta.uid(one) in admitted:
            admitted.discard(meta.uid(one))
            assert index == 0 or done >= 1 << (index.bit_length() - 1), f"{meta.name(one)} comes too early"
    assert not admitted, f"{admitted} take no part"


def _admitted(revision: Obj) -> list[str]:
    found: list[str] = (revision.get("status") or {}).get("admitted") or []
    return found


def _follows(one: Obj) -> bool:
    annotations = meta.annotations(one)
    return "kro.run/rgd-revision" not in annotations and "kro.run/update-policy" not in annotations


def _age(one: Obj) -> tuple[Any, ...]:
    return one["metadata"]["creationTimestamp"], meta.namespace(one), meta.name(one)


PROMISES: tuple[Invariant, ...] = (
    numbers_have_no_gap_and_no_double,
    a_revision_is_the_content_of_its_definition,
    content_is_not_published_twice,
    a_needed_revision_is_not_released,
    the_current_revision_only_grows_and_is_served,
    a_spec_is_written_only_to_roll_back,
    instances_are_let_through_in_waves,
)
