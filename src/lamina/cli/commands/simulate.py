"""`lamina simulate`: simulates a change on a copy of a cluster and reports the result."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple, TypeAlias, TypeVar

import click

from lamina.actors.stages import Stage, without_image_rules
from lamina.cli.commands.clock import now_at
from lamina.cli.manifests import (
    Manifest,
    check_stdin_once,
    first_document,
    naming_source,
    read_manifests,
    with_namespace,
)
from lamina.cli.options.apply_flags import FILE, manifest_options
from lamina.cli.options.cluster_flags import find_kind, load_access, object_options, parse_object, with_client
from lamina.cli.options.param_types import parse_seconds
from lamina.cli.output.simulate_output import exit_code, print_result
from lamina.cli.server_version import is_embedded, server_version
from lamina.client.client import Client
from lamina.control_plane.load_stages import load_stages
from lamina.core.model.family import Family
from lamina.core.model.queries import Answer, Call
from lamina.errors import Forbidden, MethodNotAllowed, NotFound, SettingsError
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj
from lamina.runtime.controller.snapshot import Snapshot
from lamina.runtime.hooks.client import HookClient
from lamina.simulation.cluster.apiserver import HookCaller
from lamina.simulation.cluster.object_rules import refuse_hooks
from lamina.simulation.scenario import (
    ApplyOptions,
    Failures,
    FinalState,
    Simulation,
    against_baseline,
    builtin,
    read_failures,
)
from lamina.simulation.scenario.readiness_stub import Readiness
from lamina.simulation.scenario.simulation import READY_AFTER

_FORBIDDEN = "warning: listing these in all namespaces is forbidden, and they are simulated as if there were none: {}\n"


def _duration(context: click.Context, option: click.Parameter, text: str) -> timedelta:
    """Return a duration, which may be 0."""
    return timedelta(seconds=parse_seconds(text, option.opts[0], allow_zero=True))


@click.command()
@manifest_options("to apply, as for kubectl")
@click.option(
    "--for",
    "span",
    metavar="TIME",
    default="1h",
    show_default=True,
    callback=_duration,
    help="Simulated time.",
)
@click.option("--delete", "deleted", metavar="KIND/NAME", multiple=True, help="Object to delete; repeatable.")
@click.option("--rollback", "rolled_back", metavar="KIND/NAME", help="Owner to roll back.")
@click.option(
    "--to-revision", type=int, metavar="N", help="Revision to roll back to. Default: the previous one."
)
@click.option("--failures", metavar="FILE", type=FILE, help="Failures to simulate, as YAML.")
@click.option(
    "--state", metavar="FILE", multiple=True, type=FILE,
    help="Objects to start with, instead of those of a cluster; repeatable.",
)  # fmt: skip
@click.option(
    "--ready",
    metavar="KIND=CONDITION,...",
    multiple=True,
    help="Kind whose objects report these conditions some time after each change, if no simulated controller does; "
    "repeatable.",
)
@click.option(
    "--ready-after",
    metavar="TIME",
    default=f"{READY_AFTER.total_seconds():.0f}s",
    show_default=True,
    callback=_duration,
    help="Time until an object of --ready reports its conditions; managed clusters take up to half of it more.",
)
@click.option("--stages", metavar="FILE", type=FILE, help="Stages of pods. Default: those of `lamina up`.")
@click.option("--hooks", metavar="FILE", multiple=True, type=FILE, help="Python file with hooks; repeatable.")
@click.option("--no-hooks", is_flag=True, help="Do not call hooks: every call fails.")
@click.option(
    "--families", metavar="NAMES", default="all", show_default=True, help="Families to run, comma-separated."
)
@click.option("--all", "everything", is_flag=True, help="Print the steps of pods and workloads, too.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@object_options
def simulate(
    files: tuple[Path, ...],
    more: tuple[Path, ...],
    span: timedelta,
    deleted: tuple[str, ...],
    rolled_back: str | None,
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
    Simulate a change on a copy of the cluster and report the result.

    The manifests in FILE, a folder, or - for standard input, are applied to a
    copy of the cluster's state, and the clock is advanced. The controllers of the
    families are the real ones; workload controllers, pods and garbage collection
    are simulated. Nothing is written to the cluster.

    Hooks of CompositeControllers and DecoratorControllers are called, with
    simulated objects: a hook must not have side effects. Use --no-hooks if yours
    have.

    Exit status: 0 if every owner is healthy at the end, apart from those that
    would be unhealthy without the change, too; 2 if not; 3 if that is not known
    of an owner in FILE whose hooks cannot be called from here; 1 if the simulation
    cannot run. Other owners whose hooks cannot be called are listed as not
    simulated, and do not count.
    """
    check_stdin_once([*([failures] if failures else []), *state, *hooks, *files, *more])
    if to_revision is not None and not rolled_back:
        raise SettingsError("--to-revision needs --rollback KIND/NAME", hint="name the owner with --rollback")
    simulated_failures = read_failures(first_document(failures), str(failures)) if failures else Failures()
    manifests = read_manifests([*files, *more])
    given_stages = load_stages(stages) if stages is not None else None
    selected = chosen(families)

    def run(
        now: datetime, pod_stages: Sequence[Stage], kinds: Kinds, objects: Iterable[Obj], outside: Outside
    ) -> tuple[Simulation, list[FinalState]]:
        def start() -> Simulation:
            return Simulation(
                families=selected,
                kinds=kinds,
                objects=objects,
                now=now.replace(microsecond=0),
                stages=pod_stages,
                failures=simulated_failures,
                readiness=[_readiness(kinds, selected, one, ready_after) for one in ready],
                ready_after=ready_after,
                apply_options=ApplyOptions(server_side, field_manager, force_conflicts),
                declared=outside.declared,
                call=refuse_hooks if no_hooks else outside.call,
                fetch=outside.fetch,
            )

        def unchanged() -> Simulation:
            simulation = start()
            simulation.run(span)
            return simulation

        simulation = start()
        for manifest in manifests:
            _apply(simulation, manifest, namespace)
        for target in deleted:
            simulation.delete(parse_object(simulation.cluster.kinds, target, namespace))
        if rolled_back:
            simulation.rollback(parse_object(simulation.cluster.kinds, rolled_back, namespace), to_revision)
        simulation.run(span)
        return simulation, against_baseline(simulation, unchanged)

    if state:
        objects = [one.obj for one in read_manifests(state)]
        pod_stages = given_stages or without_image_rules(load_stages())
        now = datetime.now(UTC)
        simulation, states = asyncio.run(
            _simulate_in_thread(hooks, partial(run, now, pod_stages, builtin(), objects))
        )
    else:

        async def run_on_copy(client: Client) -> tuple[Simulation, list[FinalState]]:
            pod_stages = given_stages or await stages_of(client)
            # The server's own clock, which may be ahead of the system clock, stamped its objects.
            return await simulate_cluster(client, hooks, partial(run, await now_at(client), pod_stages))

        simulation, states = with_client(load_access(kubeconfig, context), run_on_copy)
    print_result(simulation, states, output, everything)
    sys.exit(exit_code(states))


async def stages_of(client: Client) -> Sequence[Stage]:
    """Return the stages of pods as the cluster of a client has them: only our server fails images by their names."""
    stages = load_stages()
    return stages if is_embedded(await server_version(client)) else without_image_rules(stages)


Result = TypeVar("Result")
Fetch: TypeAlias = Callable[[Kind], Sequence[Obj]]


class Outside(NamedTuple):
    """The I/O of a simulation: hook calls, the controllers that hooks files declare, and lists of a cluster."""

    call: HookCaller
    declared: Sequence[Obj] = ()
    fetch: Fetch | None = None


async def simulate_cluster(
    client: Client,
    hooks: tuple[Path, ...],
    run: Callable[[Kinds, Iterable[Obj], Outside], Result],
) -> Result:
    """Run a simulation on a copy of a cluster's state; a kind is listed once, at the first read."""
    snapshot, loop = await Snapshot.of(client), asyncio.get_running_loop()
    fetched: dict[GroupKind, Sequence[Obj]] = {}
    forbidden: list[str] = []

    async def list_kind(kind: Kind) -> Sequence[Obj]:
        try:
            return (await client.list(kind)).items if kind.can("list") else ()
        except Forbidden:
            forbidden.append(kind.plural)
        except (NotFound, MethodNotAllowed):
            pass
        return ()

    def fetch(kind: Kind) -> Sequence[Obj]:
        if kind.group_kind not in fetched:
            fetched[kind.group_kind] = _run_in_loop(loop, lambda: list_kind(kind))
        return fetched[kind.group_kind]

    try:
        return await _simulate_in_thread(hooks, partial(run, snapshot.kinds, ()), fetch)
    finally:
        if forbidden:
            click.echo(_FORBIDDEN.format(", ".join(sorted(forbidden))), err=True)


async def _simulate_in_thread(
    hooks: tuple[Path, ...], run: Callable[[Outside], Result], fetch: Fetch | None = None
) -> Result:
    """Run a simulation in a thread; this loop calls the hooks and lists the objects."""
    loop, files, interrupted = asyncio.get_running_loop(), Hooks(hooks, log), Event()
    await files.start()
    calls = HookClient(local=files.find if hooks else lambda url: None)

    def call(question: Call) -> Answer:
        return _run_in_loop(loop, lambda: calls.call(question), interrupted)

    try:
        return await _run_in_thread(lambda: run(Outside(call, files.manifests, fetch)))
    except asyncio.CancelledError:
        # The thread may ask for one more call while this loop ends: a task that is created then is never run.
        interrupted.set()
        raise
    finally:
        await files.close()
        await calls.close()


def _run_in_loop(
    loop: asyncio.AbstractEventLoop,
    start: Callable[[], Coroutine[Any, Any, Result]],
    interrupted: Event | None = None,
) -> Result:
    """Run a coroutine in the loop of another thread, and wait for it; a loop that ends or has ended does not create it."""
    done: Future[Result] = Future()

    def begin() -> None:
        if interrupted is not None and interrupted.is_set():
            done.cancel()
        else:
            loop.create_task(start()).add_done_callback(finish)

    def finish(task: asyncio.Task[Result]) -> None:
        if task.cancelled():
            done.cancel()
        elif (failure := task.exception()) is not None:
            done.set_exception(failure)
        else:
            done.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    return done.result()


async def _run_in_thread(work: Callable[[], Result]) -> Result:
    """Run a function in a daemon thread, which does not delay the end of an interrupted process."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except InvalidStateError:
            pass  # The waiting task was cancelled.
        except BaseException as error:
            with suppress(InvalidStateError):
                done.set_exception(error)

    Thread(target=run, daemon=True, name="simulation").start()
    return await asyncio.wrap_future(done)


# ── manifests and options ──


def _apply(simulation: Simulation, manifest: Manifest, namespace: str) -> None:
    """Apply a manifest; an error names its file."""
    with naming_source(manifest):
        kinds, hint = simulation.cluster.kinds, "put its CustomResourceDefinition before it"
        simulation.apply(with_namespace(kinds, manifest.obj, namespace, hint=hint))


def _readiness(kinds: Kinds, families: Sequence[Family], text: str, after: timedelta) -> Readiness:
    from lamina.core.crd.kinds import kinds_of

    word, _, conditions = text.partition("=")
    installed = [kind for family in families for one in family.definitions() for kind in kinds_of(one)]
    kind = find_kind(Kinds([*kinds.versions(), *installed]), word)
    return Readiness(kind, tuple(name for name in conditions.split(",") if name) or ("Ready",), after)
