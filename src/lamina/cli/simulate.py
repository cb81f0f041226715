"""`lamina simulate`: a change, played on paper."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click

from lamina.cli.amounts import length
from lamina.cli.clock import now_at
from lamina.cli.plans import words
from lamina.cli.reaching import kind_named, named, object_options, reach, with_client
from lamina.client.client import Client
from lamina.core.family import Family
from lamina.core.questions import Answer, Call
from lamina.errors import Forbidden, MethodNotAllowed, NotFound, SettingsError
from lamina.families.every import chosen
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.paper.cluster import Calling
from lamina.paper.rules import nobody_calls
from lamina.runtime.calls import Calls
from lamina.runtime.picture import Picture
from lamina.simulation import Ending, Failures, Simulation, Told, builtin, read_failures
from lamina.simulation.simulation import TAKES
from lamina.simulation.standins import Readiness
from lamina.stages import documents, load_stages

_NOT_WELL = 2
_WORDS = {True: "well", False: "NOT WELL"}
_FEW = 3
"""How many objects are named each; of more, the first."""
_AT_ONCE = timedelta(seconds=1)


def _span(context: click.Context, option: click.Parameter, text: str) -> timedelta:
    """Return a length of time, as everywhere on the command line; none at all is one too."""
    return timedelta(seconds=length(text, option.opts[0], or_none=True))


_FILE = click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=_FILE)
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
    span: timedelta,
    gone: tuple[str, ...],
    back: str | None,
    to_revision: int | None,
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

    The manifests in FILE are applied to a copy of what the cluster holds now,
    and time is wound. The controllers are the real ones; workloads, pods and
    garbage collection are played by stand-ins, and nothing is written anywhere.

    Hooks of CompositeControllers and DecoratorControllers are really called,
    with what is on paper: by contract they answer and do nothing else. Where
    that is not so, use --no-hooks.

    Ends with 0 if everything that was rolled out ended well, and with 2 if not.
    """
    asked = (failures, *state, *hooks, *files)
    if sum(str(one) == "-" for one in asked) > 1:
        raise SettingsError("standard input can be read only once")
    broken = read_failures(_first(failures), str(failures)) if failures else Failures()
    manifests = [obj for file in files for obj in _objects(file)]
    stood = load_stages(stages)
    wanted = chosen(families)

    def play(
        now: datetime, kinds: Kinds, objects: Iterable[Obj], call: Calling, fetch: Fetch | None
    ) -> Simulation:
        simulation = Simulation(
            families=wanted,
            kinds=kinds,
            objects=objects,
            now=now.replace(microsecond=0),
            stages=stood,
            failures=broken,
            readiness=[_readiness(kinds, wanted, one, ready_after) for one in ready],
            takes=ready_after,
            call=nobody_calls if no_hooks else call,
            fetch=fetch,
        )
        for manifest in manifests:
            simulation.apply(_placed(simulation.paper.kinds, manifest, namespace))
        for target in gone:
            simulation.delete(named(simulation.paper.kinds, target, namespace))
        if back:
            simulation.rollback(named(simulation.paper.kinds, back, namespace), to_revision)
        simulation.run(span)
        return simulation

    if state:
        objects = [obj for file in state for obj in _objects(file)]
        now = datetime.now(UTC)
        done = asyncio.run(_aside(hooks, lambda call: play(now, builtin(), objects, call, None)))
    else:

        async def play_there(client: Client) -> Simulation:
            # What it holds was stamped by its own clock, which somebody may have wound.
            return await on_a_copy(client, hooks, partial(play, await now_at(client)))

        done = with_client(reach(kubeconfig, context), play_there)
    _say(done, output, everything)


Fetch = Callable[[Kind], Sequence[Obj]]
Play = Callable[[Kinds, Iterable[Obj], Calling, Fetch | None], Simulation]


async def on_a_copy(client: Client, hooks: tuple[Path, ...], play: Play) -> Simulation:
    """Play on a copy of what a cluster holds: what is looked at is listed, once, when it is first looked at."""
    picture, loop = await Picture.of(client), asyncio.get_running_loop()

    def fetch(kind: Kind) -> Sequence[Obj]:
        return asyncio.run_coroutine_threadsafe(_listed(client, kind), loop).result()

    return await _aside(hooks, lambda call: play(picture.kinds, (), call, fetch))


async def _listed(client: Client, kind: Kind) -> Sequence[Obj]:
    try:
        return (await client.list(kind)).items if kind.can("list") else ()
    except (Forbidden, NotFound, MethodNotAllowed):
        # What may not be seen is not there.
        return ()


async def _aside(hooks: tuple[Path, ...], play: Callable[[Calling], Simulation]) -> Simulation:
    """Play in a thread, while hooks are called and lists are fetched here."""
    loop, files = asyncio.get_running_loop(), Hooks(hooks, log)
    await files.start()
    calls = Calls(local=files.find if hooks else lambda url: None)

    def call(question: Call) -> Answer:
        return asyncio.run_coroutine_threadsafe(calls.call(question), loop).result()

    try:
        return await asyncio.to_thread(play, call)
    finally:
        await files.close()
        await calls.close()


# ── what is read ──


def _objects(file: Path) -> list[Made]:
    """Return the objects in a file of manifests; lists are taken apart."""
    found: list[Made] = []
    for document in documents(_text(file), str(file)):
        if document is None:
            continue
        manifest = _manifest(file, document, "kind")
        items = manifest.get("items") or [] if manifest["kind"].endswith("List") else [manifest]
        for one in items if isinstance(items, list) else [items]:
            found.append(_manifest(file, one, "kind", "apiVersion"))
    return found


def _manifest(file: Path, document: object, *needs: str) -> Made:
    if not isinstance(document, dict):
        raise SettingsError(f"{file}: expected manifests, got {type(document).__name__}")
    for name in needs:
        if not isinstance(document.get(name), str):
            raise SettingsError(f"{file}: expected manifests, got something without {name}")
    return document


def _first(file: Path) -> object:
    return next(iter(documents(_text(file), str(file))), None)


def _text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {why}") from None


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


# ── what is said ──


def _say(done: Simulation, output: str, everything: bool) -> None:
    endings = done.endings()
    well = all(one.well for one in endings)
    told = [one for one in done.story if one.ours or everything or done.is_changed(one.ref)]
    if output == "json":
        shown = {
            "well": well,
            "seconds": (done.paper.now - done.now).total_seconds(),
            "story": [_told(one) for one in told],
            "endings": [_ended(one) for one in endings],
        }
        click.echo(json.dumps(shown, indent=2))
    else:
        for line in _in_full(told) if everything else _in_short(told):
            click.echo(line)
        click.echo("")
        for line in _endings(endings):
            click.echo(line)
    sys.exit(0 if well else _NOT_WELL)


def _sentence(one: Told) -> str:
    return f"{one.because}; {one.failure}" if one.failure and one.failure != one.because else one.because


def _in_full(story: Sequence[Told]) -> Iterator[str]:
    """Yield everything that happened, and what was done."""
    for one in story:
        yield f"{_clock(one.after)}  {one.ref}: {_sentence(one) or 'as it should be'}"
        for action in one.done:
            yield f"{'':10}  {words(action)}"


def _in_short(story: Sequence[Told]) -> Iterator[str]:
    """
    Yield what is news: a sentence once for each object, and once for all of a kind that have it at one moment.

    That somebody waits is no news where the waiting is over at once.
    """
    said: dict[tuple[str, Ref], list[Told]] = {}
    for one in story:
        before = said.setdefault((one.by, one.ref), [])
        if not _sentence(one) or (before and _sentence(before[-1]) == _sentence(one)):
            continue
        if before and _waits(before[-1]) and one.after - before[-1].after < _AT_ONCE:
            before.pop()
        before.append(one)
    kept = {id(one) for told in said.values() for one in told}
    lines: dict[tuple[str, str, str], list[Ref]] = {}
    for one in story:
        if id(one) in kept:
            lines.setdefault((_clock(one.after), one.ref.kind, _sentence(one)), []).append(one.ref)
    for (clock, _, sentence), refs in lines.items():
        yield f"{clock}  {_named(refs)}: {sentence}"


def _waits(one: Told) -> bool:
    return one.because.startswith("waiting for") and not one.failure


def _named(refs: Sequence[Ref]) -> str:
    """Return what people call some objects of a kind: the first few of many."""
    if len(refs) <= _FEW:
        return ", ".join(map(str, refs))
    return f"{refs[0]} and {len(refs) - 1} more {refs[0].kind.lower()}s"


def _endings(endings: Sequence[Ending]) -> Iterator[str]:
    """Yield how everybody stands; those of a kind that merely are there, in one line."""
    alike: dict[tuple[str, bool, str, str], list[Ref]] = {}
    for one in endings:
        if one.account is not None:
            yield _line(one)
        else:
            alike.setdefault((one.ref.kind, one.well, one.state, one.because), []).append(one.ref)
    for (_, well, state, because), refs in alike.items():
        if len(refs) <= _FEW:
            yield from (_line(Ending(ref, well, state, because)) for ref in refs)
        else:
            yield f"{_WORDS[well]}  {_named(refs)} are {state}{f': {because}' if because else ''}"


def _line(ending: Ending) -> str:
    account = ending.account
    moved = (
        f", {account.arrived} of {len(account.targets)} on revision {account.goal}"
        if account and account.goal
        else ""
    )
    because = f": {ending.because}" if ending.because else ""
    return f"{_WORDS[ending.well]}  {ending.ref} is {ending.state}{moved}{because}"


def _clock(after: timedelta) -> str:
    seconds = after.total_seconds()
    return f"{int(seconds // 3600)}:{int(seconds // 60 % 60):02}:{seconds % 60:04.1f}"


def _told(one: Told) -> Made:
    return {
        "after": one.after.total_seconds(),
        "by": one.by,
        "object": str(one.ref),
        "because": one.because,
        "done": [words(action) for action in one.done],
        "failure": one.failure or None,
    }


def _ended(one: Ending) -> Made:
    account = one.account
    return {
        "object": str(one.ref),
        "well": one.well,
        "state": one.state,
        "because": one.because,
        "goal": account.goal if account else None,
        "targets": dict(account.targets) if account else {},
    }
