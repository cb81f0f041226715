"""
Revisions as they are on the server, where a decision about objects must not depend on what a cache lacks.

Each function returns the plan that asks for what is missing, or that waits until the cache has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Absent, Answers, Found, Listed, Read, ReadAll
from lamina.core.phases.phase_step import RETRY
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref


def linked_to(obj: Obj, linked: Callable[[Obj], Iterable[Obj]]) -> list[Obj]:
    """Return the revisions that are linked to one, directly or by others; `linked` returns those of one revision."""
    uids, found = {meta.uid(obj)}, [obj]
    for this in found:
        for other in linked(this):
            if meta.uid(other) not in uids:
                uids.add(meta.uid(other))
                found.append(other)
    return found[1:]


def live_revisions(
    kind: Kind, namespace: str, ignored: Collection[str], answers: Answers
) -> list[Obj] | Plan:
    """
    Return the objects of a kind and namespace as they are, but those of these uids.

    Their metadata is listed, and only the others are read whole: a namespace may have many revisions.
    """
    listed = ReadAll(kind, namespace)
    found = answers.get(listed)
    if found is None:
        return Plan(queries=(listed,))
    there = found.objects if isinstance(found, Listed) else ()
    names = [meta.name(one) for one in there if meta.uid(one) not in ignored]
    reads = [Read(kind.ref(namespace, one), whole=True) for one in names]
    if asked := tuple(one for one in reads if one not in answers):
        return Plan(queries=asked)
    read = list(map(answers.get, reads))
    if not isinstance(found, Listed) or not all(isinstance(one, Found | Absent) for one in read):
        return Plan(because="the other revisions cannot be read", requeue_after=RETRY)
    return [one.obj for one in read if isinstance(one, Found)]


def uncached(refs: Iterable[Ref], answers: Answers) -> Plan | None:
    """Return the plan for objects that the cache lacks; None where live reads confirm that there are none."""
    reads = tuple(map(Read, refs))
    if asked := tuple(one for one in reads if one not in answers):
        return Plan(queries=asked)
    there = next((one.ref for one in reads if not isinstance(answers.get(one), Absent)), None)
    return Plan(because=f"{there} is not in the cache yet", requeue_after=RETRY) if there else None


def uncached_owner(obj: Obj, answers: Answers) -> Plan | None:
    """Return the plan for the controller of an object, which the cache lacks; None where there is none."""
    controller = meta.controller_of(obj)
    if controller is None:
        return None
    ref = Ref(controller["apiVersion"], controller["kind"], meta.namespace(obj), controller["name"])
    match answers.get(Read(ref)):
        case Found(obj=found) if meta.uid(found) != controller["uid"]:
            return None
        case _:
            return uncached([ref], answers)
