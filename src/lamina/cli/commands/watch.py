"""`lamina watch`: prints a line at each change of an owner's status."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from lamina.cli.commands.get import COLUMNS, as_json, row
from lamina.cli.options.cluster_flags import find_kind, load_access, output_options, split_target, with_client
from lamina.cli.output.rollout_status import (
    exists,
    is_gone,
    not_readable,
    owner_status_of,
    owner_statuses,
    warn_unread,
)
from lamina.cli.output.tables import StreamingTable
from lamina.cli.owner_watch import report_owners
from lamina.cli.rollout_wait import EXIT_CODES, at_most, check_ended, sentence, timeout_seconds
from lamina.client.client import Client
from lamina.core.model.family import Family
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import LaminaError
from lamina.objects.types import GroupKind, Made, Ref

Show = Callable[[Made, tuple[str, ...]], None]
_DELETED = "deleted"
_UNTIL = (*map(str, State), _DELETED)
_STATES = f"{', '.join(_UNTIL[:-1])} or {_DELETED}"


class _Until(click.Choice[str]):
    """A state in any case; the error lists the states as the help does, not in lower case."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        return f"expected {_STATES}, got {value!r}"


@click.command(epilog=EXIT_CODES)
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the owners. Default: all namespaces.")
@click.option(
    "--until",
    type=_Until(_UNTIL, case_sensitive=False),
    metavar="STATE",
    help=f"Exit when an owner is in this state: {_STATES}, in any case.",
)
@click.option(
    "--timeout", metavar="TIME", help="Exit with code 124 after this time (30s, 10m). Default: none."
)
@output_options
def watch(
    kind: str | None,
    namespace: str | None,
    until: str | None,
    timeout: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Watch owners and print a line at each change of status.

    The columns are those of `lamina get`; with -o json each line is a JSON object.
    Runs until Ctrl-C, or until an owner is in the state of --until. With a NAME,
    the namespace is `default` unless -n is given; with --until, the owner must
    exist, and `--until healthy` exits with code 1 as soon as its rollout has
    ended without success.
    """
    word, name = split_target(kind)
    seconds = timeout_seconds(timeout)

    async def run(client: Client) -> None:
        watching = _Watching(name, namespace or "", until or "", _printer(output), output == "json")
        await watching.run(client, word, seconds)

    with suppress(KeyboardInterrupt):
        with_client(load_access(kubeconfig, context), run)


class _Watching:
    """Which owners are watched, until when, and what was printed of each."""

    def __init__(self, name: str, namespace: str, until: str, show: Show, compares_json: bool) -> None:
        self._name, self._namespace, self._until = name, namespace, until
        self._show, self._compares_json = show, compares_json
        self._kind: GroupKind | None = None
        self._owner: Ref | None = None
        self._family = ""
        self._printed: dict[tuple[str, Ref], _Printed] = {}
        self._done = asyncio.Event()
        self._error: LaminaError | None = None
        self._last = ""

    async def run(self, client: Client, word: str, seconds: float | None) -> None:
        kind = find_kind(await client.discover(), word) if word else None
        self._kind = kind.group_kind if kind is not None else None
        if kind is not None and self._name:
            self._owner = kind.ref(self._namespace or "default", self._name)
            self._namespace = self._owner.namespace
            if self._until and not await self._can_wait(client, self._owner):
                return
        if self._owner is None or not self._until:
            await self._check_rights(client)
        async with at_most(seconds, self._last_seen):
            synced = partial(self._check_exists, client) if self._owner is not None and self._until else None
            await report_owners(client, self._report, self._done, self._namespace, synced=synced)
        if self._error is not None:
            raise self._error

    async def _can_wait(self, client: Client, owner: Ref) -> bool:
        """Say whether there is a state to wait for: not if `deleted` is already so; raises if the owner does not exist."""
        try:
            family, _, found = await owner_status_of(client, owner)
        except LaminaError:
            if self._until != _DELETED or await exists(client, owner):
                raise
            return False
        self._family, self._last = family.name, sentence(found)
        return True

    async def _check_exists(self, client: Client) -> None:
        """Notice an owner that was deleted before the caches were filled: none of them reports it."""
        if self._owner is not None and not self._done.is_set() and await is_gone(client, self._owner):
            self._report_deleted(self._owner)

    async def _check_rights(self, client: Client) -> None:
        """Say what may not be read; raise an error if that leaves nothing to watch."""
        found = await owner_statuses(
            client, self._kind, self._namespace, lambda ref: self._name in ("", ref.name)
        )
        namespace = self._namespace or None
        if self._kind is not None and self._kind in found.refused:
            raise not_readable("there is nothing to watch", found.refused, namespace=namespace)
        for error in found.refused.values():
            click.echo(f"warning: {error.message}", err=True)
        warn_unread(found.found)

    def _last_seen(self) -> str:
        """Return what was last seen of the owner, or of all owners, for the error of a timeout."""
        if self._owner is not None:
            return self._last or f"no status of {self._owner} was read"
        waited = f", none of them {self._until}" if self._until else ""
        return f"{len({ref for _, ref in self._printed})} owners were seen{waited}"

    def _report(self, family: Family, ref: Ref, owner_status: OwnerStatus | None) -> None:
        """Print the status of an owner if it differs from the last one printed."""
        if self._done.is_set() or not self._is_watched(ref) or self._family not in ("", family.name):
            return
        if owner_status is None:
            # A wait knows that its owner existed, whether or not a status of it was printed.
            if self._printed.pop((family.name, ref), None) is not None or self._family:
                self._report_deleted(ref)
            return
        one, self._last = _Printed(as_json(owner_status), row(owner_status)), sentence(owner_status)
        before = self._printed.get((family.name, ref))
        self._printed[family.name, ref] = one
        # A change that the row does not show prints no row.
        if before is None or one.content(self._compares_json) != before.content(self._compares_json):
            self._show(one.status, one.cells)
        if owner_status.state == self._until:
            self._done.set()
        elif self._owner is not None:
            self._end_with(owner_status)

    def _is_watched(self, ref: Ref) -> bool:
        if self._kind is not None and GroupKind(ref.group, ref.kind) != self._kind:
            return False
        return self._namespace in ("", ref.namespace) and self._name in ("", ref.name)

    def _report_deleted(self, ref: Ref) -> None:
        self._show(_deleted_json(ref), _deleted_row(ref))
        if self._until == _DELETED:
            self._done.set()
        elif self._until and self._owner is not None:
            # The state that is waited for cannot be reached any more.
            self._error = LaminaError(f"{self._owner} was deleted before it was {self._until}")
            self._done.set()

    def _end_with(self, owner_status: OwnerStatus) -> None:
        """End where the rollout of the owner has ended otherwise than it is waited for."""
        try:
            check_ended(owner_status, self._until)
        except LaminaError as error:
            self._error = error
            self._done.set()


class _Printed(Struct, frozen=True):
    """What was printed of an owner: as JSON, and as a row."""

    status: Made
    cells: tuple[str, ...]

    def content(self, is_json: bool) -> Made | tuple[str, ...]:
        return self.status if is_json else self.cells


def _printer(output: str) -> Show:
    """Return the function that prints a status, in an output format."""
    lines = StreamingTable(COLUMNS, widths=(12, 24, 8, 7, 9, 11, 0))

    def show(status: Made, cells: tuple[str, ...]) -> None:
        try:
            click.echo(json.dumps(status) if output == "json" else lines.add(cells))
        except BrokenPipeError:
            # The reader has closed the pipe, as `head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise KeyboardInterrupt from None

    return show


def _deleted_json(ref: Ref) -> Made:
    return {
        "apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name,
        "revision": 0, "updated": 0, "available": 0, "state": _DELETED, "message": "the owner was deleted",
        "ended": False, "unread": [], "targets": {},
    }  # fmt: skip


def _deleted_row(ref: Ref) -> tuple[str, ...]:
    return (
        ref.namespace or "-", f"{ref.kind.lower()}/{ref.name}", "-", "-", "-", _DELETED, "the owner was deleted"
    )  # fmt: skip
