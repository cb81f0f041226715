"""All families, and those that the settings select."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.agents import Agents
from lamina.core.model.controller import Options as ObjectSetOptions
from lamina.core.model.family import Family
from lamina.core.model.revision_commands import RevisionCommands
from lamina.errors import SettingsError
from lamina.families.manifestwork.family import family as manifestwork
from lamina.families.manifestwork.hub.controller import Options as HubOptions
from lamina.families.metacontroller.controller import Options
from lamina.families.metacontroller.family import family as metacontroller
from lamina.families.objectset.family import family as objectset
from lamina.families.resourcegraph.commands.offer import commands
from lamina.families.resourcegraph.family import family as resourcegraph
from lamina.families.resourcegraph.options import InputStorage
from lamina.families.resourcegraph.options import Options as ResourceGraphOptions
from lamina.objects.selectors import EVERYTHING, LabelSelector


class FamilyOptions(Struct, frozen=True, kw_only=True):
    """
    How families run.

    Where controllers are objects themselves, `selector` selects those that run.
    `applies_as` is the field manager that children are applied with, empty for a
    three-way merge; `flush` is the longest time between two passes over an owner.
    """

    selector: LabelSelector = EVERYTHING
    workers: int = 5
    applies_as: str = ""
    flush: timedelta = timedelta(minutes=30)
    schedules: bool = True
    """Whether clusters are selected for placements; if not, another scheduler does that."""
    registers: bool = True
    """Whether clusters and their sets are reconciled; if not, another controller does that."""
    manifest_limit: int = 512_000
    """How many bytes of manifests a work may have."""
    replica_sets: bool = True
    """Whether ManifestWorkReplicaSets are rolled out; if not, all writes of them are refused."""
    cleans_up: bool = True
    """Whether completed ManifestWorks are deleted after ttlSecondsAfterFinished."""
    omits: bool = False
    """Whether templates of resource graphs may use `omit()`."""
    history_limit: int = 10
    """How many revisions of a resource graph are kept, where its definition does not say it."""
    inline_inputs: bool = False
    """Whether the specs of input revisions are kept in the status of their instance, and not as objects."""
    propagation_interval: timedelta = timedelta(seconds=30)
    """How often a propagateWhen that holds instances back is evaluated without an event."""
    deletes_crds: bool = False
    """Whether a generated CustomResourceDefinition is deleted with its ResourceGraphDefinition."""


USUAL = FamilyOptions()

GATES = {
    "ManifestWorkReplicaSet": "replica_sets",
    "CleanUpCompletedManifestWork": "cleans_up",
    "CELOmitFunction": "omits",
}
"""The features that can be switched on and off, by the names of their feature gates upstream."""


def gated(options: FamilyOptions, gates: str) -> FamilyOptions:
    """Return options with feature gates set: `NAME=true` or `NAME=false`, comma-separated."""
    gate_values: dict[str, bool] = {}
    for one in filter(None, map(str.strip, gates.split(","))):
        name, _, value = one.partition("=")
        if name not in GATES or value.lower() not in ("true", "false"):
            raise SettingsError(
                f'expected {" or ".join(f"{gate}=true|false" for gate in GATES)}, got "{one}"',
                hint="separate several with commas",
            )
        gate_values[GATES[name]] = value.lower() == "true"
    return replace(options, **gate_values)


def _metacontroller(given: FamilyOptions) -> Family:
    options = Options(
        selector=given.selector,
        workers=given.workers,
        server_side_apply=bool(given.applies_as),
        field_manager=given.applies_as,
        flush=given.flush,
    )
    return metacontroller(options)


def _manifestwork(options: FamilyOptions) -> Family:
    return manifestwork(
        HubOptions(
            workers=options.workers,
            flush=options.flush,
            schedules=options.schedules,
            registers=options.registers,
            manifest_limit=options.manifest_limit,
            replica_sets=options.replica_sets,
            cleans_up=options.cleans_up,
        )
    )


def _objectset(options: FamilyOptions) -> Family:
    return objectset(ObjectSetOptions(workers=options.workers, flush=options.flush))


def _resourcegraph(options: FamilyOptions) -> Family:
    return resourcegraph(
        ResourceGraphOptions(
            workers=options.workers,
            flush=options.flush,
            omit=options.omits,
            history_limit=options.history_limit,
            input_storage=InputStorage.INLINE if options.inline_inputs else InputStorage.CRD,
            propagation_interval=options.propagation_interval,
            deletes_definitions=options.deletes_crds,
        )
    )


EVERY: Mapping[str, Callable[[FamilyOptions], Family]] = {
    "metacontroller": _metacontroller,
    "manifestwork": _manifestwork,
    "objectset": _objectset,
    "resourcegraph": _resourcegraph,
}
"""Each family by its name."""


def agents() -> Agents:
    """Return the agents of the family that has agents."""
    return next(family.agents for family in chosen("all") if family.agents is not None)()


def kro() -> RevisionCommands:
    """Return the commands of the command line `kro`."""
    return commands()


def chosen(names: str, options: FamilyOptions = USUAL) -> tuple[Family, ...]:
    """Return the families of these names, comma-separated, or `all`, or `none`."""
    if names == "none":
        return ()
    wanted = list(EVERY) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in EVERY]
    if unknown:
        raise SettingsError(
            f"unknown family {unknown[0]!r}", hint=f"the families are {', '.join(EVERY)}; or all, or none"
        )
    return tuple(EVERY[name](options) for name in wanted)
