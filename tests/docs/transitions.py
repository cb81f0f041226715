"""
What the conditions of a replica set go through, as tables: printed from the family at work on paper.

`python -m tests.docs.transitions` writes them into the page, with the table of situations that the family decides by.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lamina.families.manifestwork.situation import TABLE, Said
from lamina.objects.types import Obj, Ref
from tests.unit.families.manifestwork.fleet import APP, OK1, OK2, SLOW, Fleet, progressive

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


def _late(fleet: Fleet) -> None:
    fleet.want(SLOW)
    fleet.roll()
    fleet.pass_time(6)
    fleet.roll()


def _prepared(*contents: Obj, strategy: Obj) -> Fleet:
    fleet = Fleet()
    fleet.start(contents[0], strategy=strategy)
    _undone(fleet)
    for content in contents[1:]:
        fleet.want(content)
        _undone(fleet)
    return fleet


def stories() -> Mapping[str, list[tuple[str, ...]]]:
    """Return the four stories, each with the rows it goes through."""
    soaking = progressive(minSuccessTime="5s", progressDeadline="None")
    undo = _prepared(OK2, OK1, strategy=soaking)
    stops = _prepared(OK1, strategy=progressive(failureStrategy=""))
    aborts = _prepared(OK1, strategy=progressive())

    def back(fleet: Fleet) -> None:
        fleet.want(OK2)
        _undone(fleet)

    return {
        "A new replica set": _rows(Fleet(), _new),
        "An undo": _rows(undo, back),
        "A deadline that passes, without a failure strategy": _rows(stops, _late),
        "An abort": _rows(aborts, _late),
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


def _said(said: Said | None, otherwise: str) -> str:
    return f"{said.status} {said.reason}" if said is not None else otherwise


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
            str(situation),
            _said(row.progressing, "as it was"),
            _said(row.rolled_out, ""),
            _said(row.applied, "as the works are counted"),
        )
        for number, (situation, row) in enumerate(TABLE.items(), 1)
    ]
    lines += _table(("", "situation", "Progressing", "PlacementRolledOut", "ManifestworkApplied"), decided)
    return "\n".join(lines)


BEGIN, END = "<!-- printed from the code -->", "<!-- end of what is printed -->"


def main() -> None:
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{printed()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
