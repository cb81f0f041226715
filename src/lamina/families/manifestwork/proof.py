"""
Whether clusters that are late really are.

A rollout is aborted because nothing good was heard of some clusters for as long as
they were given. Whoever is shown the past hears nothing either. So before that is
written down their works are read, and the decisions that name them: as many as it
takes to be too many, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.questions import Answer, Answers, Found, Read
from lamina.core.rollout import Standing
from lamina.families.manifestwork.names import WORK
from lamina.families.manifestwork.progress import Progress
from lamina.families.manifestwork.view import Placed, View, clusters_in
from lamina.families.manifestwork.work import Work, facts, work_ref
from lamina.objects import meta
from lamina.objects.types import Ref

_DOUBTS = 8
"""How many that look late and are not it takes to see that what is seen is the past."""


class Proof(Struct, frozen=True):
    """What it takes to be sure that too many are late: what is still to be read, or that it is not so."""

    asks: tuple[Read, ...] = ()
    is_refuted: bool = False


PROVEN = Proof()
Standings: TypeAlias = Callable[[Placed], Mapping[str, Standing]]
"""Says where the clusters of a placement stand."""


def proof(late: Progress, answers: Answers, standings: Standings) -> Proof:
    """
    Return how sure it is that more clusters are late than are tolerated.

    A few are read at first, and more for each that is sure, or that is not: whoever
    is shown the past knows soon, and whoever is not needs few rounds.
    """
    placed, toll = late.placed, late.toll
    sure, unread = 0, list[tuple[Read, ...]]()
    for cluster in toll.too_late:
        asks = tuple(_evidence(placed, cluster))
        if any(one not in answers for one in asks):
            unread.append(asks)
        elif _is_named(cluster, answers.get(asks[-1])):
            sure += 1
    needed = toll.tolerated + 1 - sure
    if needed <= 0:
        return PROVEN
    doubts = _doubts(late, answers, standings)
    if needed > len(unread) or doubts >= _DOUBTS:
        return Proof(is_refuted=True)
    next_ones = unread[: min(max(needed, doubts), max(sure, _DOUBTS))]
    return Proof(tuple(dict.fromkeys(one for asks in next_ones for one in asks if one not in answers)))


def _doubts(late: Progress, answers: Answers, standings: Standings) -> int:
    """Return how many clusters looked late and are not, or are not named any more."""
    placed, seen = late.placed, late.placed.seen
    if seen is None:
        return 0
    looked = standings(seen)
    return sum(
        1
        for cluster, work in seen.works.items()
        if looked.get(cluster) is Standing.FAILED
        and placed.works.get(cluster) is not work
        and (late.step.standing.get(cluster) is not Standing.FAILED or _is_dropped(placed, cluster, answers))
    )


def _is_dropped(placed: Placed, cluster: str, answers: Answers) -> bool:
    """Say whether the decision that named a cluster was read, and names it no more."""
    *_, naming = _evidence(placed, cluster)
    return naming in answers and not _is_named(cluster, answers.get(naming))


def _evidence(placed: Placed, cluster: str) -> Iterator[Read]:
    yield Read(work_ref(cluster, placed.works[cluster].name), whole=True)
    naming = next(one for one in placed.decisions if cluster in clusters_in(one))
    yield Read(meta.ref(naming), whole=True)


def _is_named(cluster: str, decision: Answer | None) -> bool:
    return isinstance(decision, Found) and cluster in clusters_in(decision.obj)


def looked_at(view: View, answers: Answers) -> View:
    """Return a view with works as they were read, where they were, and not as they were seen."""
    known = dict(_works_read(answers))
    if not known:
        return view
    real: dict[int, Work | None] = {}
    for work in view.works:
        ref = work_ref(work.cluster, work.name)
        real[id(work)] = known.get(ref, work)
    return replace(
        view,
        works=tuple(one for one in real.values() if one is not None),
        placed=tuple(_looked_at(one, real) for one in view.placed),
    )


def _works_read(answers: Answers) -> Iterator[tuple[Ref, Work | None]]:
    for asked, answer in answers.known.items():
        if isinstance(asked, Read) and (asked.ref.group, asked.ref.kind) == tuple(WORK):
            yield asked.ref, facts(answer.obj) if isinstance(answer, Found) else None


def _looked_at(placed: Placed, real: dict[int, Work | None]) -> Placed:
    if all(real[id(work)] is work for work in (*placed.works.values(), *placed.surplus)):
        return placed
    works = {cluster: real[id(work)] for cluster, work in placed.works.items()}
    return replace(
        placed,
        works={cluster: work for cluster, work in works.items() if work is not None},
        surplus=tuple(one for work in placed.surplus if (one := real[id(work)]) is not None),
        seen=placed,
    )
