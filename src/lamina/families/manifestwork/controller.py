"""The hub's half of this family, as a value."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from lamina.core.controller import Controller, Watch, only
from lamina.core.world import whole
from lamina.families.manifestwork.admission import LIMIT
from lamina.families.manifestwork.names import (
    DECISION,
    MANAGER,
    PLACEMENT,
    PLACEMENT_VERSION,
    REPLICA_SET,
    REPLICA_SET_VERSION,
    REVISION,
    REVISION_VERSION,
    WORK,
    WORK_VERSION,
)
from lamina.families.manifestwork.news import complain
from lamina.families.manifestwork.plan import plan, questions
from lamina.families.manifestwork.revision import revisions_only
from lamina.families.manifestwork.view import (
    View,
    gather,
    itself_at_once,
    itself_later,
    of_its_owner,
    using_its_placement,
    using_the_placement,
)
from lamina.families.manifestwork.work import facts_only


class Options(Struct, frozen=True, kw_only=True):
    """How the hub runs: with how many hands, and how long a replica set is left alone at most."""

    workers: int = 5
    flush: timedelta = timedelta(minutes=30)
    schedules: bool = True
    """Whether it chooses clusters for placements; if not, somebody else does."""
    registers: bool = True
    """Whether it looks after clusters and their sets; if not, somebody else does."""
    manifest_limit: int = LIMIT
    """How many bytes of manifests a work may have."""
    replica_sets: bool = True
    """Whether replica sets are rolled out; if not, nobody may write one."""
    cleans_up: bool = True
    """Whether works go that say how long they are to be kept once they are complete."""


DEFAULTS = Options()
_TOGETHER = timedelta(milliseconds=100)
"""A thousand agents answer one by one, and what they say together is one step."""


def hub(options: Options = DEFAULTS) -> Controller[View]:
    """Return the controller that rolls out replica sets."""
    return Controller(
        name="manifestworkreplicaset",
        watches=(
            Watch(
                selects=only(*REPLICA_SET),
                api_version=REPLICA_SET_VERSION,
                concerns=itself_at_once,
                keep=whole,
            ),
            Watch(
                selects=only(*REPLICA_SET),
                api_version=REPLICA_SET_VERSION,
                concerns=itself_later,
                keep=whole,
                delay=_TOGETHER,
            ),
            Watch(
                selects=only(*WORK),
                api_version=WORK_VERSION,
                concerns=of_its_owner,
                keep=facts_only,
                delay=_TOGETHER,
            ),
            Watch(
                selects=only(*PLACEMENT),
                api_version=PLACEMENT_VERSION,
                concerns=using_the_placement,
                keep=whole,
            ),
            Watch(
                selects=only(*DECISION),
                api_version=PLACEMENT_VERSION,
                concerns=using_its_placement,
                keep=whole,
            ),
            Watch(
                selects=only(*REVISION),
                api_version=REVISION_VERSION,
                concerns=of_its_owner,
                keep=revisions_only,
            ),
        ),
        gather=gather,
        questions=questions,
        plan=plan,
        complain=complain,
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
    )
