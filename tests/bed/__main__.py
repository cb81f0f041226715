"""The bed from the command line: `python -m tests.bed COMMAND`."""

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bed import build, e2e, scenarios, second_try
from tests.bed.either import start_server
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the bed and return its exit code."""
    asked = _parser().parse_args(arguments)
    end_tidily_on_signals()
    try:
        code: int = asked.run(asked)
    except BedError as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _build(asked: argparse.Namespace) -> int:
    families = list(build.FAMILIES) if "all" in asked.what else list(dict.fromkeys(asked.what))
    build.build(families)
    return 0


def _serve(asked: argparse.Namespace) -> int:
    with start_server(asked.command, history=asked.history, pods=asked.pods) as server:
        kubeconfig = server.kubeconfig
        if asked.kubeconfig:
            # Written to a temporary file and renamed, so that an existing file is complete.
            beside = asked.kubeconfig.with_name(asked.kubeconfig.name + ".new")
            beside.touch(mode=0o600)
            shutil.copyfile(kubeconfig, beside)
            kubeconfig = beside.replace(asked.kubeconfig)
        print(f"{asked.command} server at {server.url}, ready after {server.ready_after:.2f} s")
        print(f"export KUBECONFIG={kubeconfig}")
        print(f"export CACERT='--cacert {server.ca_file}'")
        print(f"export AUTH='--cacert {server.ca_file} --oauth2-bearer {server.token}'")
        print("Ctrl-C stops it", flush=True)
        try:
            signal.pause()
        finally:
            if asked.kubeconfig:
                asked.kubeconfig.unlink(missing_ok=True)
    return 0


def _checks(asked: argparse.Namespace) -> int:
    return scenarios.run_ids(asked.server, asked.ids, kubectl=asked.kubectl)


def _scenarios(asked: argparse.Namespace) -> int:
    if asked.keep is not None:
        return scenarios.keep(asked.server, asked.keep, kubectl=asked.kubectl)
    servers: tuple[Which, ...] = ("embedded", "real") if asked.server == "both" else (asked.server,)
    return scenarios.report(servers, kubectl=asked.kubectl)


def _pytest(asked: argparse.Namespace) -> int:
    return second_try.run(asked.arguments, jobs=asked.jobs)


def _e2e(asked: argparse.Namespace) -> int:
    names = asked.names or (e2e.wanted() if asked.all else e2e.due())
    return e2e.judge(asked.server, names, shards=asked.shards, keep=asked.keep)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    one = commands.add_parser("build", help="build the judges into the cache")
    one.add_argument("what", nargs="*", choices=[*build.FAMILIES, "all"], default=["all"], metavar="WHAT")
    one.set_defaults(run=_build)

    for which in ("real", "embedded"):
        one = commands.add_parser(which, help=f"run the {which} server until Ctrl-C")
        one.add_argument(
            "--kubeconfig", type=Path, metavar="FILE", help="where to write its kubeconfig as well"
        )
        one.add_argument("--history", metavar="TIME", help="how long old versions are kept, such as 20s")
        one.add_argument("--pods", action="store_true", help="with nodes, and pods that run on them")
        one.set_defaults(run=_serve)

    one = commands.add_parser("checks", help="run checks by id")
    one.add_argument("ids", nargs="*", metavar="ID", help="such as C07; all that the server can pass if none")
    one.set_defaults(run=_checks)
    _server_options(one)

    one = commands.add_parser("scenarios", help="run what is listed, and say what is open and why")
    one.add_argument("--server", choices=["embedded", "real", "both"], default="both")
    one.add_argument("--keep", type=Path, metavar="FILE", help="write what became of each id there, as JSON")
    one.add_argument("--kubectl", metavar="WHICH", help="a pinned minor (0.35, 0.34) or a file")
    one.set_defaults(run=_scenarios)

    one = commands.add_parser("pytest", help="run pytest; listed tests have a second try")
    one.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at once (default: 2)")
    one.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="options and paths for pytest")
    one.set_defaults(run=_pytest)

    one = commands.add_parser("e2e", help="run tests of Kubernetes' own suite")
    one.add_argument("names", nargs="*", metavar="NAME", help="as in wanted.txt; those in due.txt if none")
    one.add_argument("--all", action="store_true", help="everything in wanted.txt")
    one.add_argument("--server", choices=["embedded", "real"], default="embedded")
    one.add_argument("--shards", type=int, default=2, metavar="N", help="how many at once (default: 2)")
    one.add_argument("--keep", type=Path, metavar="DIR", help="keep what the suite said in this folder")
    one.set_defaults(run=_e2e)
    return parser


def _server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", choices=["embedded", "real"], default="embedded")
    parser.add_argument("--kubectl", metavar="WHICH", help="a pinned minor (0.35, 0.34) or a file")


if __name__ == "__main__":
    sys.exit(main())
