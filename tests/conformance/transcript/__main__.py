"""
Record transcripts: `python -m tests.conformance.transcript FILE …`.

Runs the stories of the files on a real server and writes its responses into them. With
--compare nothing is written and differences are printed. With --mark the stories run on the
embedded server: its differences are marked `not yet`, and obsolete marks are removed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bed.either import start_server
from tests.bed.kubeconfig import read_kubeconfig
from tests.bed.kubectl import Kubectl, kubectl_command
from tests.bed.server import Which
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.play import Played, Stage, differences, play
from tests.conformance.transcript.reach import HttpWire
from tests.conformance.transcript.script import NOT_YET, read_script, write_script


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare, and return the exit code."""
    asked = _parser().parse_args(arguments)
    found = 0
    with _stage(asked) as stage:
        for path in asked.files:
            script = read_script(path)
            for story in script.stories:
                if asked.only and asked.only not in story.title:
                    continue
                began = time.monotonic()
                played = play(story, stage, script.words)
                if asked.verbose:
                    print(f"{time.monotonic() - began:6.2f} s  {path.stem}: {story.title}", file=sys.stderr)
                if asked.mark:
                    _mark(played)
                elif not asked.compare:
                    _record(played)
                elif told := differences(played, embedded=stage.embedded):
                    found += 1
                    print(f"== {path.name}: {story.title}\n{told}\n")
            if not asked.compare:
                write_script(script)
    return 1 if found else 0


def _record(played: list[Played]) -> None:
    for one in played:
        one.step.answer = one.answer
        if one.step.is_open and one.step.own_answer == one.answer:
            one.step.because = ""


def _mark(played: list[Played]) -> None:
    for one in played:
        given = [line.rstrip() for line in one.answer]
        if one.step.because and not one.step.is_open:
            continue
        one.step.because = "" if given == one.step.answer else NOT_YET
        one.step.own_answer = given


@contextmanager
def _stage(asked: argparse.Namespace) -> Iterator[Stage]:
    which: Which = "embedded" if asked.mark else asked.server
    recording = not asked.compare and not asked.mark
    if asked.kubeconfig:
        yield _at(asked.kubeconfig, which, kubectl=asked.kubectl, recording=recording)
        return
    with start_server(which, pods=asked.pods) as server:
        yield _at(server.kubeconfig, which, kubectl=asked.kubectl, recording=recording)


def _at(kubeconfig: Path, which: Which, *, kubectl: str | None, recording: bool) -> Stage:
    access = read_kubeconfig(kubeconfig)
    with tempfile.NamedTemporaryFile(suffix=".crt") as authority:
        authority.write(access.authority)
        authority.flush()
        wire = HttpWire(access.url, authority.name, access.token)
    define_kinds(wire)
    return Stage(
        wire=wire,
        embedded=which == "embedded",
        kubectl=Kubectl(kubectl_command(kubectl), kubeconfig),
        url=access.url,
        recording=recording,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.transcript", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--compare", action="store_true", help="print what differs instead of recording")
    parser.add_argument("--mark", action="store_true", help="mark what the embedded server answers otherwise")
    parser.add_argument("--only", metavar="TEXT", help="only stories whose title has this in it")
    parser.add_argument("--verbose", action="store_true", help="say how long each story took")
    parser.add_argument("--pods", action="store_true", help="on a server on which pods run")
    parser.add_argument("--server", choices=["embedded", "real"], default="real")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="a server that runs already")
    parser.add_argument("--kubectl", metavar="WHICH", help="a pinned minor (0.35, 0.34) or a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
