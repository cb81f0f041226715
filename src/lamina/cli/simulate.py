"""`lamina simulate`: a change, played on paper."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeAlias, TypeVar

import click

from lamina.cli.amounts import length
from lamina.cli.clock import now_at
from lamina.cli.manifests import Manifest, first_document, read_manifests, refuse_two_readers
from lamina.cli.reaching import kind_named, named, object_options, reach, with_client
from lamina.cli.simulated import is_well, say
from lamina.client.client import Client
from lamina.core.family import Family
from lamina.core.questions import Answer, Call
from lamina.errors import ApiError, Forbidden, MethodNotAllowed, NotFound, SettingsError
from lamina.families.every import chosen
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.merge.last_applied import KUBECTL
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj
from lamina.paper.cluster import Calling
from lamina.paper.rules import nobody_calls
from lamina.runtime.calls import Calls
from lamina.runtime.picture import Picture
from lamina.simulation import Ending, Failures, Manner, Simulation, blamed, builtin, read_failures
from lamina.simulation.simulation import TAKES
from lamina.simulation.standins import Readiness
from lamina.stages import load_stages

_NOT_WELL = 2
_HIDDEN = "warning: you may not list these in all namespaces, and they are played as if there were none: {}\n"


def _span(context: click.Context, option: click.Parameter, text: str) -> timedelta:
    """Return a length of time, as everywhere on the command line; none at all is one too."""
    return timedelta(seconds=length(text, option.opts[0], or_none=True))


_FILE = click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=_FILE)
@click.option(
    "-f",
    "--filename",
    "more",
    metavar="FILE",
    multiple=True,
    type=_FILE,
    help="The same, as kubectl takes it.",
)
@click.option(
    "--for",
    "span",
    metavar="TIME",
    default="1h",
    show_default=True,
    callback=_span,
    help="How much time passes.",
)
@click.option("--delete", "gone", metavar="KIND/NAME", multiple=True, help="Object to delete.")
@click.option("--rollback", "back", metavar="KIND/NAME", help="Owner to return to an earlier revision.")
@click.option("--to-revision", type=int, metavar="N", help="To which one. Default: the one before this.")
@click.option("--server-side", is_flag=True, help="Apply by the server, whoever applied before and how.")
@click.option(
    "--field-manager", metavar="NAME", default=KUBECTL, show_default=True, help="As whom the server applies."
)
@click.option("--force-conflicts", is_flag=True, help="Have others give way whose fields the server applies.")
@click.option("--failures", metavar="FILE", type=_FILE, help="What is to go wrong, as YAML.")
@click.option(
    "--state", metavar="FILE", multiple=True, type=_FILE, help="What there is, instead of a cluster's state."
)
@click.option(
    "--ready",
    metavar="KIND=CONDITION,...",
    multiple=True,
    help="A kind whose objects report these conditions a while after each change, where nobody here makes them ready.",
)
@click.option(
    "--ready-after",
    metavar="TIME",
    default=f"{TAKES.total_seconds():.0f}s",
    show_default=True,
    callback=_span,
    help="After how long; clusters take up to half as long again.",
)
@click.option("--stages", metavar="FILE", type=_FILE, help="What pods go through. Default: as `lamina up`.")
@click.option("--hooks", metavar="FILE", multiple=True, type=_FILE, help="File with hooks to ask.")
@click.option("--no-hooks", is_flag=True, help="Call no hooks: each counts as not answering.")
@click.option("--families", metavar="NAMES", default="all", show_default=True, help="Which families run.")
@click.option("--all", "everything", is_flag=True, help="Tell also what pods and workloads do.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@object_options
def simulate(
    files: tuple[Path, ...],
    more: tuple[Path, ...],
    span: timedelta,
    gone: tuple[str, ...],
    back: str | None,
    to_revision: int | None,
    server_side: bool,
    field_manager: str,
    force_conflicts: bool,
    failures: Path | None,
    state: tuple[Path, ...],
    ready: tuple[str, ...],
    ready_after: timedelta,
    stages: Path | None,
    hooks: tuple[Path, ...],
    no_hooks: bool,
    families: str,
    everything: bool,
    output: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Play a change on paper, and say what it would end in.

    The manifests in FILE, a folder of them, or - for standard input, are applied
    to a copy of what the cluster holds now, and time is wound. The controllers are the real ones; workloads, pods and
    garbage collection are played by stand-ins, and nothing is written anywhere.

    Hooks of CompositeControllers and DecoratorControllers are really called,
    with what is on paper: by contract they answer and do nothing else. Where
    that is not so, use --no-hooks.

    Ends with 0 if everything that is rolled out ended well, but for what would
    end badly without the change, too; with 2 if not, and with 1 if it cannot be
    played.
    """
    refuse_two_readers([*([failures] if failures else []), *state, *hooks, *files, *more])
    if to_revision is not None and not back:
        raise SettingsError("--to-revision: of which owner?", hint="name it with --rollback KIND/NAME")
    broken = read_failures(first_document(failures), str(failures)) if failures else Failures()
    manifests = read_manifests([*files, *more])
    stood = load_stages(stages)
    wanted = chosen(families)

    def play(
        now: datetime, kinds: Kinds, objects: Iterable[Obj], outside: Outside
    ) -> tuple[Simulation, list[Ending]]:
        def begun() -> Simulation:
            return Simulation(
                families=wanted,
                kinds=kinds,
                objects=objects,
                now=now.replace(microsecond=0),
                stages=stood,
                failures=broken,
                readiness=[_readiness(kinds, wanted, one, ready_after) for one in ready],
                takes=ready_after,
                manner=Manner(server_side, field_manager, force_conflicts),
                declared=outside.declared,
                call=nobody_calls if no_hooks else outside.call,
                fetch=outside.fetch,
            )

        def unchanged() -> Simulation:
            simulation = begun()
            simulation.run(span)
            return simulation

        simulation = begun()
        for manifest in manifests:
            _apply(simulation, manifest, namespace)
        for target in gone:
            simulation.delete(named(simulation.paper.kinds, target, namespace))
        if back:
            simulation.rollback(named(simulation.paper.kinds, back, namespace), to_revision)
        simulation.run(span)
        return simulation, blamed(simulation, unchanged)

    if state:
        objects = [one.obj for one in read_manifests(state)]
        now = datetime.now(UTC)
        done, endings = asyncio.run(_aside(hooks, partial(play, now, builtin(), objects)))
    else:

        async def play_there(client: Client) -> tuple[Simulation, list[Ending]]:
            # What it holds was stamped by its own clock, which somebody may have wound.
            return await on_a_copy(client, hooks, partial(play, await now_at(client)))

        done, endings = with_client(reach(kubeconfig, context), play_there)
    say(done, endings, output, everything)
    sys.exit(0 if is_well(endings) else _NOT_WELL)


Played = TypeVar("Played")
Fetch: TypeAlias = Callable[[Kind], Sequence[Obj]]


class Outside(NamedTuple):
    """What there is besides paper: who calls hooks, the controllers that files of hooks declare, and a cluster."""

    call: Calling
    declared: Sequence[Obj] = ()
    fetch: Fetch | None = None


async def on_a_copy(
    client: Client,
    hooks: tuple[Path, ...],
    play: Callable[[Kinds, Iterable[Obj], Outside], Played],
) -> Played:
    """Play on a copy of what a cluster holds: what is looked at is listed, once, when it is first looked at."""
    picture, loop = await Picture.of(client), asyncio.get_running_loop()
    fetched: dict[GroupKind, Sequence[Obj]] = {}
    hidden: list[str] = []

    async def listed(kind: Kind) -> Sequence[Obj]:
        try:
            return (await client.list(kind)).items if kind.can("list") else ()
        except Forbidden:
            hidden.append(kind.plural)
        except (NotFound, MethodNotAllowed):
            pass
        return ()

    def fetch(kind: Kind) -> Sequence[Obj]:
        if kind.group_kind not in fetched:
            fetched[kind.group_kind] = _waited_for(loop, lambda: listed(kind))
        return fetched[kind.group_kind]

    try:
        return await _aside(hooks, partial(play, picture.kinds, ()), fetch)
    finally:
        if hidden:
            click.echo(_HIDDEN.format(", ".join(sorted(hidden))), err=True)


async def _aside(
    hooks: tuple[Path, ...], play: Callable[[Outside], Played], fetch: Fetch | None = None
) -> Played:
    """Play in a thread, while hooks are called and lists are fetched here."""
    loop, files = asyncio.get_running_loop(), Hooks(hooks, log)
    await files.start()
    calls = Calls(local=files.find if hooks else lambda url: None)

    def call(question: Call) -> Answer:
        return _waited_for(loop, lambda: calls.call(question))

    try:
        return await _in_a_thread(lambda: play(Outside(call, files.manifests, fetch)))
    finally:
        await files.close()
        await calls.close()


def _waited_for(loop: asyncio.AbstractEventLoop, begin: Callable[[], Coroutine[Any, Any, Played]]) -> Played:
    """Have something done in a loop that runs elsewhere, and wait for it; nothing is begun in one that has ended."""
    done: Future[Played] = Future()

    def finish(task: asyncio.Task[Played]) -> None:
        if task.cancelled():
            done.cancel()
        elif (failure := task.exception()) is not None:
            done.set_exception(failure)
        else:
            done.set_result(task.result())

    loop.call_soon_threadsafe(lambda: loop.create_task(begin()).add_done_callback(finish))
    return done.result()


async def _in_a_thread(work: Callable[[], Played]) -> Played:
    """Do something in a thread that nobody waits for who has been interrupted."""
    done: Future[Played] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except InvalidStateError:
            pass  # Who asked is gone.
        except BaseException as error:
            with suppress(InvalidStateError):
                done.set_exception(error)

    Thread(target=run, daemon=True, name="simulation").start()
    return await asyncio.wrap_future(done)


# ── what is read ──


def _apply(simulation: Simulation, manifest: Manifest, namespace: str) -> None:
    """Apply a manifest; what is wrong with it is said with the name of its file."""
    try:
        simulation.apply(_placed(simulation.paper.kinds, manifest.obj, namespace))
    except SettingsError as error:
        raise SettingsError(f"{manifest.source}: {error}", hint=error.hint) from None
    except ApiError as error:
        error.message = f"{manifest.source}: {error.message}"
        raise


def _placed(kinds: Kinds, manifest: Made, namespace: str) -> Made:
    """Return a manifest with the namespace it is meant for."""
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    if kind is None:
        raise SettingsError(
            f"nobody serves kind {manifest['kind']} in version {manifest['apiVersion']}",
            hint="put its CustomResourceDefinition before it",
        )
    if not meta.metadata(manifest).get("name") and meta.metadata(manifest).get("generateName"):
        raise SettingsError(f"a {kind.kind} with a generateName cannot be applied", hint="give it a name")
    if not kind.namespaced or meta.namespace(manifest):
        return manifest
    return meta.with_metadata(manifest, namespace=namespace)


def _readiness(kinds: Kinds, families: Sequence[Family], text: str, after: timedelta) -> Readiness:
    from lamina.core.definitions import kinds_of

    word, _, said = text.partition("=")
    ours = [kind for family in families for one in family.definitions() for kind in kinds_of(one)]
    kind = kind_named(Kinds([*kinds.versions(), *ours]), word)
    return Readiness(kind, tuple(name for name in said.split(",") if name) or ("Ready",), after)
