"""`lamina watch`: prints a line at each change of an owner's status."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
from msgspec.structs import replace

from lamina.cli.commands.get import COLUMNS, as_json, row
from lamina.cli.options.cluster_flags import find_kind, load_access, output_options, split_target, with_client
from lamina.cli.output.rollout_status import owner_status_of
from lamina.cli.output.tables import StreamingTable
from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.core.model.controller import AnyController, Controller, Source, Watch, no_keys
from lamina.core.model.family import Family
from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.state import State
from lamina.core.model.world import Change, World
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import LaminaError, NotFound
from lamina.families.registry import chosen
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.controller.manager import Manager

Report = Callable[[Ref, OwnerStatus | None], None]
_DELETED = "deleted"
_UNTIL = (*map(str, State), _DELETED)
_STATES = f"{', '.join(_UNTIL[:-1])} or {_DELETED}"


class _Until(click.Choice[str]):
    """A state in any case; the error lists the states as the help does, not in lower case."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        return f"expected {_STATES}, got {value!r}"


@click.command()
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the owners. Default: all namespaces.")
@click.option(
    "--until",
    type=_Until(_UNTIL, case_sensitive=False),
    metavar="STATE",
    help=f"Exit when an owner is in this state: {_STATES}, in any case.",
)
@output_options
def watch(
    kind: str | None,
    namespace: str | None,
    until: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Watch owners and print a line at each change of status.

    The columns are those of `lamina get`; with -o json each line is a JSON object.
    Runs until Ctrl-C, or until an owner is in the state of --until. With a NAME,
    the namespace is `default` unless -n is given; with --until, the owner must
    exist.
    """
    word, name = split_target(kind)
    with suppress(KeyboardInterrupt):
        with_client(
            load_access(kubeconfig, context),
            lambda client: _watch(client, word, name, namespace, until, output),
        )


async def _watch(
    client: Client, word: str, name: str, namespace: str | None, until: str | None, output: str
) -> None:
    kind = find_kind(await client.discover(), word) if word else None
    group_kind = kind.group_kind if kind is not None else None
    owner = kind.ref(namespace or "default", name) if kind is not None and name else None
    if owner is not None:
        namespace = owner.namespace
    if owner is not None and until and not await _can_wait(client, owner, until):
        return
    printed: dict[Ref, Made | tuple[str, ...]] = {}
    done = asyncio.Event()
    lines = StreamingTable(COLUMNS, widths=(12, 24, 8, 7, 9, 11, 0))

    def report(ref: Ref, owner_status: OwnerStatus | None) -> None:
        """Print the status of an owner if it differs from the last one printed."""
        if group_kind is not None and GroupKind(ref.group, ref.kind) != group_kind:
            return
        if (namespace and ref.namespace != namespace) or (name and ref.name != name):
            return
        if owner_status is None:
            if ref in printed:
                del printed[ref]
                show(_deleted_json(ref), _deleted_row(ref))
                if owner is not None and until:
                    # The state that is waited for cannot be reached any more.
                    done.set()
            return
        shown, cells = as_json(owner_status), row(owner_status)
        # A change that the row does not show prints no row.
        content: Made | tuple[str, ...] = shown if output == "json" else cells
        if printed.get(ref) != content:
            printed[ref] = content
            show(shown, cells)

    def show(status: Made, cells: tuple[str, ...]) -> None:
        if not done.is_set():
            _print(lines, output, status, cells)
        if status["state"] == until:
            done.set()

    families = chosen("all")
    sources = [_observed(family, source, report) for family in families for source in family.sources]
    fixed = [one for family in families for one in _observers(family, family.controllers, (), report)]
    watching = asyncio.create_task(Manager(client, fixed, clock=WallClock(), sources=sources).run())
    ending = asyncio.create_task(done.wait())
    try:
        await asyncio.wait((watching, ending), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await watching
        if owner is not None and not printed and until != _DELETED:
            raise LaminaError(f"{owner} was deleted before it was {until}")
    finally:
        for task in (watching, ending):
            task.cancel()
        await asyncio.gather(watching, ending, return_exceptions=True)


async def _can_wait(client: Client, owner: Ref, until: str) -> bool:
    """Say whether there is a state to wait for: not if `deleted` is already so; raises if the owner does not exist."""
    if until != _DELETED:
        await owner_status_of(client, owner)
        return True
    try:
        await client.get(owner)
    except NotFound:
        return False
    return True


def _print(lines: StreamingTable, output: str, status: Made, cells: tuple[str, ...]) -> None:
    try:
        click.echo(json.dumps(status) if output == "json" else lines.add(cells))
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise KeyboardInterrupt from None


def _deleted_json(ref: Ref) -> Made:
    return {
        "apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name,
        "revision": 0, "updated": 0, "available": 0, "state": _DELETED, "message": "the owner was deleted",
        "targets": {},
    }  # fmt: skip


def _deleted_row(ref: Ref) -> tuple[str, ...]:
    return (
        ref.namespace or "-", f"{ref.kind.lower()}/{ref.name}", "-", "-", "-", _DELETED, "the owner was deleted"
    )  # fmt: skip


def _observed(family: Family, source: Source, report: Report) -> Source:
    """Return a source of observers: one for each controller of the source."""
    return replace(
        source,
        controllers=lambda world: _observers(family, source.controllers(world), source.watches, report),
    )


def _with_itself(watch: Watch) -> Watch:
    """Return a watch that enqueues the changed object, too: its controller may skip what it wrote itself."""

    def enqueue(world: World, change: Change) -> Iterable[Ref]:
        return dict.fromkeys((*watch.enqueue(world, change), change.ref))

    return replace(watch, enqueue=enqueue)


def _observers(
    family: Family, running: Sequence[AnyController], more: Sequence[Watch], report: Report
) -> tuple[AnyController, ...]:
    """Return controllers with the same keys as those that run, the watches of all of them, and an empty plan."""
    watches = [*more, *(watch for controller in running for watch in controller.watches)]
    cached = tuple(replace(watch, enqueue=no_keys) for watch in watches)

    def status_of(seen: tuple[World, Ref], answers: Answers) -> OwnerStatus | tuple[Query, ...] | None:
        world, ref = seen
        if family.live_status is None:
            return family.owner_status(world, ref)
        return family.live_status(world, ref, answers)

    def queries(seen: tuple[World, Ref], answers: Answers) -> tuple[Query, ...]:
        found = status_of(seen, answers)
        return found if isinstance(found, tuple) else ()

    def plan(seen: tuple[World, Ref], answers: Answers, now: datetime) -> Plan:
        found = status_of(seen, answers)
        assert not isinstance(found, tuple), "all queries are answered"
        report(seen[1], found)
        return NOTHING

    return tuple(
        Controller(
            name=controller.name,
            watches=(*map(_with_itself, controller.watches), *cached),
            gather=lambda world, ref: (world, ref),
            queries=queries,
            plan=plan,
            config_hash=" ".join(one.config_hash for one in running),
        )
        for controller in running
    )
