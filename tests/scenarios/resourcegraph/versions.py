"""Definitions that are published several times, and the revisions that their instances have come to."""

from collections.abc import Sequence
from typing import Any

from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.scenarios.resourcegraph.stage import Predicate, Stage, config_map, is_on, node, status

EXPONENTIALLY = ["${exponentiallyUpdated(instances, each)}"]
MANUAL = {"updatePolicy": {"type": "Manual"}}


def config(version: object, *, gated: bool = False) -> Made:
    """The resource of a version; with `gated` it is ready once a user has opened it for that version."""
    made = node(
        "config",
        config_map(
            "${schema.spec.name}-cm", replicas="${string(schema.spec.replicas)}", version=str(version)
        ),
    )
    return {**made, "readyWhen": [f'${{"open{version}" in config.data}}']} if gated else made


async def publish(stage: Stage, number: int, *resources: Obj, name: str = "app", **fields: Any) -> Made:
    """Publish the version of a number, which is the number of its revision as well."""
    await stage.redefine(*(resources or (config(number),)), name=name, **fields)
    return await stage.until_published(number, name)


async def given_versions(stage: Stage, last: int, **fields: Any) -> None:
    """Publish the versions from 1 on; the revision of each has its number."""
    await stage.given_definition(config(1), **fields)
    for number in range(2, last + 1):
        await publish(stage, number, **fields)


async def given_instances(stage: Stage, count: int, **spec: Any) -> list[str]:
    """Create instances one after the other, and wait until all are active; return their names in that order."""
    names = [f"a{number}" for number in range(1, count + 1)]
    for name in names:
        await stage.given_instance(name, settles=False, **spec)
    for name in names:
        await stage.until_instance(name)
    return names


async def until_all_on(stage: Stage, names: Sequence[str], revision: int) -> None:
    for name in names:
        await stage.until_instance(name, is_on(revision=revision))


async def open_children(stage: Stage, names: Sequence[str], version: int) -> None:
    """Make the resources of these instances ready in a version."""
    for name in names:
        await stage.edit(stage.object_ref(f"{name}-cm"), {"data": {f"open{version}": "true"}})


async def close_children(stage: Stage, names: Sequence[str], version: int) -> None:
    for name in names:
        await stage.edit(stage.object_ref(f"{name}-cm"), {"data": {f"open{version}": None}})


def stamp(child: Obj | None, name: str = "rgd-revision") -> str:
    """Return a revision that a child is stamped with."""
    return meta.annotations(child or {}).get(f"kro.run/{name}", "")


async def stamps(stage: Stage, names: Sequence[str]) -> list[str]:
    """Return the revisions that the resources of these instances are stamped with."""
    return [stamp(await stage.object(f"{name}-cm")) for name in names]


async def reached(stage: Stage, names: Sequence[str], revision: int) -> list[str]:
    """Return those of the instances whose resources are at a revision, once nothing moves."""
    await stage.settled()
    found = await stamps(stage, names)
    return [name for name, one in zip(names, found, strict=True) if one == str(revision)]


async def until_counted(stage: Stage, *counts: tuple[int, int], name: str = "app") -> Made:
    """Wait until a definition and its revisions report these numbers of instances, newest first."""

    def says(obj: Made) -> bool:
        # Counts are written at most once a second.
        stage.pass_time(1)
        found = status(obj).get("revisionHistory") or ()
        return tuple((one["revision"], one["instanceCount"]) for one in found) == counts

    found = await stage.until_definition(says, name)
    for number, count in counts:
        (revision,) = [one for one in await stage.revisions(name) if one["spec"]["revision"] == number]
        await stage.until(meta.ref(revision), _counts(count))
    return found


def _counts(instances: int) -> Predicate:
    return lambda obj: status(obj).get("instanceCount") == instances


def history(obj: Obj) -> list[tuple[int, int, str]]:
    """Return the input revisions that the status of an instance lists: number, RGD revision and status."""
    listed = status(obj).get("inputRevisionHistory") or ()
    return [(one["revision"], one["rgdRevision"], one["status"]) for one in listed]
