"""The objects of revisions as the targets of a rollout: by phase, with controller, probe and reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lamina.core.health.probe import HEALTHY, ProbeResult, unhealthy
from lamina.core.health.probe_spec import Probes
from lamina.core.model.queries import Answers
from lamina.core.model.state import State, StateRule, decide
from lamina.core.phases.archive import RevisionFacts
from lamina.core.phases.live_objects import live_objects, unfollowed
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.object_step import probe
from lamina.core.rollout.owner_status import TargetStatus
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj


class RevisionObjects(Struct, frozen=True, kw_only=True):
    """What the status of targets depends on in one revision."""

    facts: RevisionFacts
    manifests: tuple[Manifest, ...]
    elsewhere: frozenset[ObjectKey] = frozenset()
    """Those of its objects that are on another cluster, as far as that is known."""
    is_over: bool = False
    """Whether none of its objects are left."""
    probes: Probes = Probes()

    @property
    def here(self) -> tuple[Manifest, ...]:
        """Return the objects whose live state tells how they are."""
        return () if self.is_over else tuple(one for one in self.manifests if one.key not in self.elsewhere)


class _Target(Struct, frozen=True):
    """One object: whether the latest revision contains and controls it, its probe, and the state of its owner."""

    live: Obj | None
    is_controlled: bool
    on_goal: bool
    is_wanted: bool
    result: ProbeResult
    owner: State


TARGET_STATES: tuple[StateRule[_Target], ...] = (
    StateRule(
        State.DELETING,
        "metadata.deletionTimestamp of the object is set",
        lambda one: one.live is not None and meta.is_deleting(one.live),
    ),
    StateRule(
        State.PAUSED,
        "not controlled by the latest revision; the owner is Paused",
        lambda one: not one.on_goal and one.owner is State.PAUSED,
    ),
    StateRule(
        State.PENDING,
        "not controlled by the latest revision, which contains it",
        lambda one: not one.on_goal and one.is_wanted,
    ),
    StateRule(
        State.HEALTHY, "its probes are healthy", lambda one: one.is_controlled and one.result.is_healthy
    ),
    StateRule(
        State.DEGRADED,
        "its probes fail, and the owner is Degraded",
        lambda one: one.on_goal and one.owner is State.DEGRADED,
    ),
    StateRule(State.PROGRESSING, "its probes fail", lambda one: True),
)
"""The state of an object; the first row that holds decides."""


def targets(
    revisions: Sequence[RevisionObjects], latest: RevisionObjects, owner: State, answers: Answers | None
) -> dict[str, TargetStatus]:
    """
    Return the objects of the latest revision, then those that others still control, by phase.

    Without answers to what `here` of each follows, they are as the revisions report them.
    """
    here = [manifest for one in revisions for manifest in one.here]
    lives = live_objects(here, answers) if answers is not None and not unfollowed(here, answers) else None
    holders = {key: one for one in revisions for key in one.facts.controlled}
    found: dict[str, TargetStatus] = {}
    for one in _in_order(revisions, latest):
        for manifest in one.manifests:
            key, holder = manifest.key, holders.get(manifest.key)
            if one is latest or (key not in latest.facts.contents.places and holder is one):
                known = lives if key not in one.elsewhere else None
                found.setdefault(f"{manifest.phase}/{key}", _target(key, holder, latest, owner, known))
    return found


def _in_order(revisions: Sequence[RevisionObjects], latest: RevisionObjects) -> Iterable[RevisionObjects]:
    yield latest
    yield from (one for one in reversed(revisions) if one is not latest and one.facts.controlled)


def _target(
    key: ObjectKey,
    holder: RevisionObjects | None,
    latest: RevisionObjects,
    owner: State,
    lives: Mapping[ObjectKey, Obj] | None,
) -> TargetStatus:
    live = lives.get(key) if lives is not None else None
    result = _reported(key, holder) if lives is None else probe((holder or latest).probes, live)
    facts = _Target(
        live=live,
        is_controlled=holder is not None,
        on_goal=holder is not None and holder is latest,
        is_wanted=key in latest.facts.contents.places,
        result=result,
        owner=owner,
    )
    who = (
        f"controlled by {meta.ref(holder.facts.obj)}"
        if holder is not None
        else "not controlled by any revision"
    )
    return TargetStatus(
        revision=holder.facts.number if holder is not None else 0,
        state=decide(TARGET_STATES, facts),
        message=who if result.is_healthy else f"{who}: {result.because}",
        available=holder is not None and result.is_healthy,
        kind=GroupKind(key.group, key.kind),
    )


def _reported(key: ObjectKey, holder: RevisionObjects | None) -> ProbeResult:
    """Return whether an object is available, as far as the revision that controls it reports that."""
    if holder is None:
        return unhealthy("no status reported")
    if holder.facts.is_available:
        return HEALTHY
    found = conditions.find(conditions.of(holder.facts.obj), "Available")
    message = found.get("message") or "" if found is not None else "no status reported"
    return unhealthy(message) if f"{key}: " in message or not holder.facts.has_succeeded else HEALTHY
