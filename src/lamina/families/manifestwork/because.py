"""The sentence: why what happens happens, made once and said in the condition, the event, the log and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.core.rollout import listed
from lamina.families.manifestwork.album import Album
from lamina.families.manifestwork.progress import Progress
from lamina.families.manifestwork.situation import Situation
from lamina.families.manifestwork.template import revision_name
from lamina.families.manifestwork.view import View
from lamina.objects import meta


def because(
    view: View, revisions: Album, marches: Sequence[Progress], here: Situation, breach: str | None
) -> str:
    """Return the sentence that is said everywhere: why what happens happens."""
    wanted = revisions.wanted.name
    match here:
        case Situation.TURNING:
            return f"{breach}; turning round to {named(view, revisions.current)}"
        case Situation.TURNED:
            return _turned(view, revisions, marches)
        case Situation.LATE:
            said = "; ".join(one.toll.overdue for one in marches if one.toll.overdue)
            return f"{said}; {no_way_back(view, revisions)}" if breach else said
        case Situation.FAILING:
            return "; ".join(one.toll.failing for one in marches if one.toll.failing)
        case Situation.NOBODY:
            return "no cluster is selected"
        case Situation.DONE:
            return f"New revision {wanted} is successfully progressed"
        case Situation.SETTLED | Situation.UNDER_WAY | Situation.AGAIN:
            return _under_way(marches)


def named(view: View, tag: str) -> str:
    """Return what the revision with that mark is called."""
    return revision_name(meta.name(view.obj), tag)


def no_way_back(view: View, revisions: Album) -> str:
    """Return why a rollout that should be aborted is not."""
    return f"revision {named(view, revisions.current)} not found, cannot abort"


def _turned(view: View, revisions: Album, marches: Sequence[Progress]) -> str:
    there = sum(one.restored for one in marches)
    total = sum(len(one.clusters) for one in marches)
    back = named(view, revisions.current)
    said = [f"rollout of {revisions.wanted.name} aborted, {there} of {total} clusters restored to {back}"]
    if revisions.stable is None:
        needing = [name for one in marches for name in one.clusters if name not in one.standing]
        if needing:
            said.append(f"revision {back} not found, it is needed by {listed(needing)}")
    unwell = [
        f"{name} ({where.because})"
        for one in marches
        for name, where in one.standing.items()
        if where.verdict.answer == "False"
    ]
    if unwell:
        said.append(f"not well there: {listed(unwell)}")
    return "; ".join(said)


def _under_way(marches: Sequence[Progress]) -> str:
    several = len(marches) > 1
    said: list[str] = []
    for one in marches:
        reason = one.step.because
        if one.toll.late and not one.step.move and not {"moving", "waiting"} & set(one.step.progress):
            reason = f"finished, {one.toll.late} tolerated failures; {reason}"
        said.append(f"{one.placed.name}: {reason}" if several else reason)
    return "; ".join(said)
