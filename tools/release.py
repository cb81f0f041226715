"""
Cuts a release: `python -m tools.release 0.2.0 --summary "What it is about."`.

The files of changes/ become a section of CHANGELOG.md and are removed, and the version is
written to the package and to the chart. Commit and tag the result.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.chart import versioned

ROOT = Path(__file__).parents[1]
HEADINGS = {
    "added": "Added",
    "changed": "Changed",
    "deprecated": "Deprecated",
    "removed": "Removed",
    "fixed": "Fixed",
}
_PACKAGE, _CHART = Path("src/lamina/__init__.py"), Path("charts/lamina/Chart.yaml")
_VERSION = re.compile(r'(?m)^__version__ = "([^"]+)"$')


class ReleaseError(Exception):
    """The release cannot be cut; nothing was written."""


def section(version: str, date: str, summary: str, changes: Mapping[str, str]) -> str:
    """Return the section of a release: its changes by kind, each as one item; `changes` has texts by file name."""
    parts = [f"## {version} ({date})", summary] if summary else [f"## {version} ({date})"]
    for kind, heading in HEADINGS.items():
        if texts := [text for name, text in sorted(changes.items()) if kind_of(name) == kind]:
            parts += [f"### {heading}", "\n".join(map(_item, texts))]
    return "\n\n".join(parts) + "\n"


def kind_of(name: str) -> str:
    """Return the kind in the name of a file of changes/, such as `added` in `agent.added.md`."""
    return name.removesuffix(".md").rpartition(".")[2]


def _item(text: str) -> str:
    first, *rest = text.strip().splitlines()
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in rest)])


def changelog(text: str, added: str) -> str:
    """Return the changelog with a section above the earlier ones."""
    before, heading, rest = text.partition("\n## ")
    return f"{before.rstrip()}\n\n{added}{heading}{rest}"


def check(root: Path, version: str) -> Mapping[str, str]:
    """Return the changes by file name; ReleaseError if there are none, one has no kind, or the version is not higher."""
    names = sorted(path.name for path in (root / "changes").glob("*.md"))
    if not names:
        raise ReleaseError("changes/ is empty: there is nothing to release")
    if wrong := [name for name in names if kind_of(name) not in HEADINGS]:
        raise ReleaseError(
            f"changes/{wrong[0]} ends in none of {', '.join(f'.{kind}.md' for kind in HEADINGS)}"
        )
    found = _VERSION.search((root / _PACKAGE).read_text())
    if found is None or _numbers(version) <= _numbers(found[1]):
        raise ReleaseError(f"{version} is not higher than {found[1] if found else 'an unknown version'}")
    return {name: (root / "changes" / name).read_text() for name in names}


def _numbers(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"expected a version as 0.2.0, got {version!r}")
    return tuple(map(int, version.split(".")))


def cut(root: Path, version: str, date: str, summary: str = "") -> None:
    """Cut a release in a checkout."""
    changes = check(root, version)
    page, package, chart = root / "CHANGELOG.md", root / _PACKAGE, root / _CHART
    page.write_text(changelog(page.read_text(), section(version, date, summary, changes)))
    package.write_text(_VERSION.sub(f'__version__ = "{version}"', package.read_text()))
    chart.write_text(versioned(chart.read_text(), version))
    for name in changes:
        (root / "changes" / name).unlink()
    # An empty folder would be gone from the next clone.
    (root / "changes" / ".gitkeep").touch()


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Cut a release.")
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--summary", default="", help="what the release is about, in a sentence or two")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="its date; default: today")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    try:
        cut(ROOT, asked.version, asked.date, asked.summary)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"CHANGELOG.md has {asked.version}; commit it, and tag v{asked.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
