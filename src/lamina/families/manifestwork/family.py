"""ManifestWorkReplicaSet, as a family among others."""

from __future__ import annotations

from lamina.core.family import Account, Family
from lamina.core.plan import Plan
from lamina.core.world import World
from lamina.errors import LaminaError
from lamina.families.manifestwork import rollback as way_back
from lamina.families.manifestwork.admission import checks
from lamina.families.manifestwork.controller import DEFAULTS, Options, hub
from lamina.families.manifestwork.crds import definitions
from lamina.families.manifestwork.finished import FINISHED
from lamina.families.manifestwork.names import REPLICA_SET
from lamina.families.manifestwork.placement.clusters import CLUSTERS
from lamina.families.manifestwork.placement.controller import PLACEMENTS
from lamina.families.manifestwork.placement.sets import BINDINGS, SETS
from lamina.families.manifestwork.rights import rights
from lamina.families.manifestwork.view import gather
from lamina.objects.types import Ref


def family(options: Options = DEFAULTS) -> Family:
    """Return this family, run with these options."""
    return Family(
        name="manifestwork",
        definitions=definitions,
        controllers=(
            *((hub(options),) if options.replica_sets else ()),
            *((FINISHED,) if options.cleans_up else ()),
            *((PLACEMENTS,) if options.schedules else ()),
            *((CLUSTERS, SETS, BINDINGS) if options.registers else ()),
        ),
        sources=(),
        owners=lambda world: tuple(world.every(REPLICA_SET)),
        account=_account,
        rollback=_rollback,
        rights=lambda objects: rights(objects, schedules=options.schedules, registers=options.registers),
        records={
            "manifestworkreplicasets.work.open-cluster-management.io": (
                "status.updateRevision",
                "status.currentRevision",
                "status.abortedTime",
                "status.collisionCount",
            )
        },
        # Whoever binds a set of clusters may send there, and a work goes out as it is: not for any editor to write.
        edited=(
            "manifestworkreplicasets.work.open-cluster-management.io",
            "placements.cluster.open-cluster-management.io",
        ),
        checks=checks(options.manifest_limit, schedules=options.schedules, replica_sets=options.replica_sets),
    )


def _account(world: World, ref: Ref) -> Account | None:
    view = gather(world, ref)
    return way_back.account(view) if view is not None else None


def _rollback(world: World, ref: Ref, to: int | None) -> Plan:
    view = gather(world, ref)
    if view is None:
        raise LaminaError(f"{ref} is not there")
    return way_back.rollback(view, to)
