"""
The conditions of a replica set during rollouts, as tables: printed from the family on a simulated cluster.

`python -m tests.docs.transitions` writes them into the page, with the table of situations that the family decides by.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lamina.families.manifestwork.hub.phase import TABLE, Result
from lamina.objects.types import Obj, Ref
from tests.unit.families.manifestwork.fleet import APP, BAD, OK1, OK2, SLOW, Fleet, progressive

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "manifestwork.md"
_HEAD = ("PlacementVerified", "ManifestworkApplied", "Progressing", "PlacementRolledOut", "current", "update", "aborted")  # fmt: skip


def _new(fleet: Fleet) -> None:
    fleet.start(OK1)
    fleet.roll()


def _undone(fleet: Fleet) -> None:
    for _ in range(4):
        fleet.roll()
        fleet.pass_time(6)
    fleet.roll()


def _late(fleet: Fleet, content: Obj = SLOW) -> None:
    fleet.want(content)
    fleet.roll()
    fleet.pass_time(6)
    fleet.roll()


_fails = partial(_late, content=BAD)


def _prepared(*contents: Obj, strategy: Obj) -> Fleet:
    fleet = Fleet()
    fleet.start(contents[0], strategy=strategy)
    _undone(fleet)
    for content in contents[1:]:
        fleet.want(content)
        _undone(fleet)
    return fleet


def stories() -> Mapping[str, list[tuple[str, ...]]]:
    """Return the scenarios, each with its rows."""
    soaking = progressive(minSuccessTime="5s", progressDeadline="None")
    undo = _prepared(OK2, OK1, strategy=soaking)
    stops = progressive(failureStrategy="")

    def back(fleet: Fleet) -> None:
        fleet.want(OK2)
        _undone(fleet)

    return {
        "A new replica set": _rows(Fleet(), _new),
        "An undo": _rows(undo, back),
        "A deadline that passes, without a failure strategy": _rows(_prepared(OK1, strategy=stops), _late),
        "A failure before the deadline, without a failure strategy": _rows(
            _prepared(OK1, strategy=stops), _fails
        ),
        "An abort": _rows(_prepared(OK1, strategy=progressive()), _late),
        "An abort after a failure before the deadline": _rows(_prepared(OK1, strategy=progressive()), _fails),
    }


def _rows(fleet: Fleet, happens: Callable[[Fleet], None]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    called = {fleet.current: "h1"} | {"": ""}
    start = fleet.row() if APP in fleet.objects else None

    def note(ref: Ref, before: Obj | None, after: Obj | None) -> None:
        if ref != APP or not fleet.status().get("updateRevision"):
            return
        if fleet.update not in called:
            called[fleet.update] = "h2" if fleet.current else "h1"
        shown = (
            *(_shown(one) for one in fleet.row()),
            called[fleet.current],
            called[fleet.update],
            "t" if fleet.aborted else "",
        )
        if (not rows and fleet.row() != start) or (rows and rows[-1] != shown):
            rows.append(shown)

    fleet.listeners.append(note)
    happens(fleet)
    return rows


def _shown(said: str) -> str:
    status, _, reason = said.partition(" ")
    return f"{({'T': 'True', 'F': 'False'}).get(status, status)} {reason}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + " --- |" * len(head)
    yield from (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)


def _result(result: Result | None, otherwise: str) -> str:
    return f"{result.status} {result.reason}" if result is not None else otherwise


def printed() -> str:
    """Return all tables, as the page has them."""
    lines: list[str] = []
    for title, rows in stories().items():
        lines += [
            f"### {title}",
            "",
            *_table(("", *_HEAD), [(str(n), *row) for n, row in enumerate(rows, 1)]),
            "",
        ]
    lines += ["### What decides", ""]
    decided = [
        (
            str(number),
            str(phase),
            _result(row.progressing, "unchanged"),
            _result(row.rolled_out, ""),
            _result(row.applied, "by the numbers of works"),
        )
        for number, (phase, row) in enumerate(TABLE.items(), 1)
    ]
    lines += _table(("", "phase", "Progressing", "PlacementRolledOut", "ManifestworkApplied"), decided)
    return "\n".join(lines)


BEGIN, END = "<!-- printed from the code -->", "<!-- end of what is printed -->"


def main() -> None:
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{printed()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
