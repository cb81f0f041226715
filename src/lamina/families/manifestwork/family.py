"""The family of ManifestWorkReplicaSet and ManifestWork, as a value."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from lamina.core.model.agents import Agents, SimulatedAgents, SimulatedFleet
from lamina.core.model.family import Family, OptionalStatus
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.core.rollout.revision_object import CONTROLLER_REVISION
from lamina.families.manifestwork.admission import checks
from lamina.families.manifestwork.crds.bundle import definitions
from lamina.families.manifestwork.hub import commands
from lamina.families.manifestwork.hub import controller as hub
from lamina.families.manifestwork.placement.controller import controllers as placement_controllers
from lamina.families.manifestwork.rbac import edits, is_finalizer, rights


def family(options: hub.Options = hub.DEFAULTS) -> Family:
    """Return this family, run with these options."""
    return Family(
        name="manifestwork",
        definitions=definitions,
        controllers=(
            *hub.controllers(options),
            *placement_controllers(schedules=options.schedules, registers=options.registers),
        ),
        sources=(),
        owners=commands.replica_sets,
        owner_status=commands.status_of,
        rollback=commands.roll_back,
        plan=partial(commands.preview_edit, options),
        health=commands.health_of,
        edits=edits,
        rights=lambda objects: rights(objects, schedules=options.schedules, registers=options.registers),
        is_finalizer=is_finalizer,
        optional_status_fields={
            "manifestworkreplicasets.work.open-cluster-management.io": OptionalStatus(
                fields=(
                    "status.updateRevision",
                    "status.currentRevision",
                    "status.abortedTime",
                    "status.collisionCount",
                ),
                without="the standard rollout runs, and no rollout is aborted",
            )
        },
        without_status=lambda why: family(replace(options, unrecorded=why)),
        # A binding gives access to the clusters of a set, and a work is applied as it is: editors may write neither.
        user_definitions=(
            "manifestworkreplicasets.work.open-cluster-management.io",
            "placements.cluster.open-cluster-management.io",
        ),
        upstream_leases=_upstream_leases(options),
        revision_kinds=(CONTROLLER_REVISION,),
        elsewhere=commands.ELSEWHERE,
        agents=_agents,
        simulated_agents=_simulated_agents,
        checks=checks(options.manifest_limit, schedules=options.schedules, replica_sets=options.replica_sets),
    )


def _upstream_leases(options: hub.Options) -> tuple[UpstreamLease, ...]:
    """Return the Leases of the hub's controllers that this family does the work of; each has a process of its own."""
    names = {"work manager": "work-manager-lock"}
    if options.schedules:
        names["placement controller"] = "placement-lock"
    if options.registers:
        names["registration controller"] = "registration-controller-lock"
    return tuple(
        UpstreamLease(
            upstream=f"the {controller} of Open Cluster Management",
            namespace="open-cluster-management-hub",
            name=name,
        )
        for controller, name in names.items()
    )


def _agents() -> Agents:
    # Loaded on demand: most processes run no agent.
    from lamina.families.manifestwork.agent.agents import agents

    return agents()


def _simulated_agents(fleet: SimulatedFleet) -> SimulatedAgents:
    from lamina.families.manifestwork.agent.agents import simulated

    return simulated(fleet)
