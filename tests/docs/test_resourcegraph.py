"""The pages on graphs of resources agree with the code."""

import re
from pathlib import Path

import click
import pytest

from lamina.cli.commands.run import run
from lamina.cli.kro import kro
from lamina.families.resourcegraph import labels
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.instances.effective_revision import Reason
from lamina.families.resourcegraph.options import DEFAULTS
from tests.docs.pages import ROOT

FAMILY = ROOT / "src" / "lamina" / "families" / "resourcegraph"
PAGE = (ROOT / "docs" / "concepts" / "resourcegraph.md").read_text()
MIGRATION = (ROOT / "docs" / "reference" / "resourcegraph.md").read_text()
_STATED = re.compile(
    r'(?:Finding|Verdict|_refused)\(\s*(?:view, )?(?:"(?:True|False|Unknown)", )?"([A-Z]\w+)"'
)
_EVENT = re.compile(r'(?:normal|warning)\(\s*\w+, "([A-Z]\w+)"')
ANNOTATIONS = (
    labels.ROLLBACK, labels.ROLLBACK_MODE, labels.CREATE_REVISION, labels.ALLOW_BREAKING, labels.PIN, labels.UPDATE_POLICY,
    labels.ACCEPT_REVISION, labels.ROLLBACK_INPUT, labels.ROLLBACK_SCOPE, labels.RECONCILE,
)  # fmt: skip


def described(page: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", page))


def found(pattern: re.Pattern[str]) -> set[str]:
    """Return what a pattern finds in the source of the family."""
    return {one for path in FAMILY.rglob("*.py") for one in pattern.findall(path.read_text())}


def rows(heading: str) -> list[list[str]]:
    """Return the rows of all tables below a heading."""
    section = MIGRATION.split(f"## {heading}\n", 1)[1].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    lines = [line.strip("|\n").split("|") for table in tables for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in cells] for cells in lines]


def test_every_reason_of_a_condition_is_described() -> None:
    stated = found(_STATED) - {"True", "False", "Unknown"}

    assert {"AllInstancesUpdated", "AllResourcesReady", "RevisionNotFound", "SpecPruned"} <= stated
    assert stated | set(Reason) <= described(PAGE)


def test_every_event_is_described() -> None:
    stated = found(_EVENT)

    assert "RevisionCreated" in stated
    assert stated <= described("".join(row[0] for row in rows("Events")))


def test_every_annotation_is_described() -> None:
    assert {row[0].strip("`").partition(":")[0] for row in rows("Annotations")} == set(ANNOTATIONS)


def test_every_option_of_the_migration_page_is_known_and_has_the_default_that_the_page_says() -> None:
    known = {name: one for one in run.params if isinstance(one, click.Option) for name in one.opts}
    for _, here, *_ in (row for row in rows("Options") if len(row) == 3):
        [name] = re.findall(r"`(--[\w-]+)`", here)
        words = {"0": "disabled", "0.0": "disabled", "True": "on", "False": "off", "": "off"}
        default = words.get(str(known[name].default))
        assert here.partition(", ")[2] == (default or str(known[name].default)), name


def test_the_limits_of_the_migration_page_are_those_of_the_code() -> None:
    [fixed] = [row[1] for row in rows("Options") if row[0].startswith("`--rgd-max-collection-size`")]

    assert fixed.endswith(
        f"{DEFAULTS.max_collection_size:,} items of a collection, {DEFAULTS.max_dimensions} dimensions"
    )
    assert f"`historyLimit`, {DEFAULTS.history_limit} if unset" in PAGE.replace("revisionManagement.", "")
    assert not DEFAULTS.omit and not DEFAULTS.deletes_definitions


@pytest.mark.parametrize("row", rows("Commands"), ids=lambda row: str(row[0]))
def test_every_command_of_the_migration_page_exists(row: list[str]) -> None:
    _, *words = row[0].split("`")[1].split()
    command: click.Command = kro
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    options = {name for one in command.params for name in one.opts}

    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= options


def test_every_new_field_of_a_definition_is_in_its_crd() -> None:
    [schema] = [
        one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for one in definitions()
        if one["spec"]["names"]["kind"] == labels.DEFINITION.kind
    ]
    for stated, owner, _ in rows("New fields"):
        if owner == labels.DEFINITION.kind:
            first, *others = re.findall(r"`([\w.\[\]]+)`", stated)
            for path in (first, *(f"{first.rpartition('.')[0]}.{other}" for other in others)):
                where = schema
                *above, last = path.split(".")
                for name in above:
                    found = where[name.removesuffix("[]")]
                    where = (found["items"] if name.endswith("[]") else found)["properties"]
                assert last in where, path


def test_the_example_and_the_tutorial_have_the_same_manifests() -> None:
    tutorial = (ROOT / "docs" / "tutorial" / "resourcegraph.md").read_text()
    for name in ("site.yaml", "sites.yaml"):
        text = Path(ROOT / "examples" / "resourcegraph" / name).read_text()
        assert re.sub(r"\A# .*\n", "", text) in tutorial
