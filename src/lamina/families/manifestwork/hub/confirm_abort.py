"""
Live reads of overdue clusters before a rollout is aborted.

A rollout is aborted because clusters did not report success before their
deadline, and a stale cache lacks such reports too. So their works are read, and
the decisions that select them: as many as exceed the failure budget, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from lamina.core.live_check import Confirmation, Fact, confirm_more_than
from lamina.core.model.queries import Answer, Answers, Found, Read
from lamina.core.rollout.step import Standing
from lamina.families.manifestwork.hub.placement_progress import Progress
from lamina.families.manifestwork.hub.view import PlacementView, View, clusters_in
from lamina.families.manifestwork.hub.work import Work, read_work, work_ref
from lamina.families.manifestwork.labels import WORK
from lamina.objects import meta
from lamina.objects.types import Ref

Standings: TypeAlias = Callable[[PlacementView], Mapping[str, Standing]]
"""Returns the standing of each cluster of a placement."""


def confirm_overdue(late: Progress, answers: Answers, standings: Standings) -> Confirmation[Any]:
    """Return whether more clusters are overdue than are tolerated, and what has still to be read for that."""
    failures, placement = late.failures, late.placement
    evidence = {
        cluster: (Read(work_ref(cluster, placement.works[cluster].name), whole=True), selecting)
        for cluster, selecting in _selecting(placement, failures.exceeding).items()
    }
    # The live works are in the progress already: what is left to confirm is that the cluster is still selected.
    facts = (
        Fact(reads, partial(_is_selected, cluster, answers, reads[-1])) for cluster, reads in evidence.items()
    )
    refuted = _refuted(late, answers, standings)
    return confirm_more_than(failures.tolerated, facts, answers, refuted=refuted)


def _selecting(placement: PlacementView, clusters: Iterable[str]) -> dict[str, Read]:
    """Return the decision that selects each cluster."""
    reads: dict[str, Read] = {}
    for decision in placement.decisions:
        for cluster in clusters_in(decision):
            reads.setdefault(cluster, Read(meta.ref(decision), whole=True))
    return {cluster: reads[cluster] for cluster in clusters}


def _is_selected(cluster: str, answers: Answers, decision: Read) -> bool:
    answer = answers.get(decision)
    return isinstance(answer, Found) and cluster in clusters_in(answer.obj)


def _refuted(late: Progress, answers: Answers, standings: Standings) -> int:
    """Return how many clusters are overdue in the cache and are not by live reads, or are not selected any more."""
    placement, cached = late.placement, late.placement.cached
    if cached is None:
        return 0
    standing = standings(cached)
    overdue = [
        cluster
        for cluster, work in cached.works.items()
        if standing.get(cluster) is Standing.FAILED and placement.works.get(cluster) is not work
    ]
    selecting = _selecting(placement, overdue)
    return sum(
        1
        for cluster in overdue
        if late.step.standing.get(cluster) is not Standing.FAILED
        or (selecting[cluster] in answers and not _is_selected(cluster, answers, selecting[cluster]))
    )


def with_live_works(view: View, answers: Answers) -> View:
    """Return a view with the works that were read in place of the cached ones."""
    known = dict(_works_read(answers))
    if not known:
        return view
    live: dict[int, Work | None] = {}
    for work in view.works:
        live[id(work)] = known.get(work_ref(work.cluster, work.name), work)
    return replace(
        view,
        works=tuple(one for one in live.values() if one is not None),
        placements=tuple(_with_live_works(one, live) for one in view.placements),
    )


def _works_read(answers: Answers) -> Iterator[tuple[Ref, Work | None]]:
    for asked, answer in answers.known.items():
        if isinstance(asked, Read) and (asked.ref.group, asked.ref.kind) == tuple(WORK):
            yield asked.ref, _work(answer)


def _work(answer: Answer) -> Work | None:
    return read_work(answer.obj) if isinstance(answer, Found) else None


def _with_live_works(placement: PlacementView, live: dict[int, Work | None]) -> PlacementView:
    if all(live[id(work)] is work for work in (*placement.works.values(), *placement.surplus)):
        return placement
    works = {cluster: live[id(work)] for cluster, work in placement.works.items()}
    return replace(
        placement,
        works={cluster: work for cluster, work in works.items() if work is not None},
        surplus=tuple(one for work in placement.surplus if (one := live[id(work)]) is not None),
        cached=placement,
    )
