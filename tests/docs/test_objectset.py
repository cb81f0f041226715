"""The pages on object sets agree with the code."""

import re
from pathlib import Path

import click
import pytest

from lamina.cli.commands.run import run
from lamina.core.phases import phase_step
from lamina.families.objectset.crds import definitions
from lamina.families.objectset.deployments import status as deployment_status
from lamina.families.objectset.labels import DELETION_POLICY
from lamina.families.objectset.sets import status as set_status
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "concepts" / "objectset.md").read_text()
MIGRATION = (ROOT / "docs" / "reference" / "objectset.md").read_text()
_CAPITALIZED = re.compile(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"')
STATUSES = {"True", "False", "Unknown", "Active"}


def stated(module: object) -> set[str]:
    """Return the types and reasons of conditions that a module has."""
    return set(_CAPITALIZED.findall(Path(str(getattr(module, "__file__", ""))).read_text())) - STATUSES


@pytest.mark.parametrize("module", [deployment_status, set_status, phase_step], ids=lambda one: one.__name__)
def test_every_reason_of_a_condition_is_described(module: object) -> None:
    found = stated(module)

    assert found
    assert found <= set(re.findall(r"`(\w+)`", PAGE))


def rows(heading: str) -> list[list[str]]:
    section = MIGRATION.split(f"## {heading}\n", 1)[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in cells] for cells in lines][2:]


def test_every_option_of_the_migration_page_is_known_and_has_the_default_that_the_page_says() -> None:
    known = {name: one for one in run.params if isinstance(one, click.Option) for name in one.opts}
    for _, here, _ in rows("Options"):
        for name in re.findall(r"`(--[\w-]+)`", here):
            default = known[name].default
            said = here.partition(", ")[2]
            if said:
                assert said == {"0": "disabled", "True": "on"}.get(str(default), str(default)), name


def test_every_new_field_is_in_the_definitions() -> None:
    schemas = {
        one["spec"]["names"]["kind"]: one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for one in definitions()
    }
    deployment, one_set = schemas["ObjectDeployment"]["spec"], schemas["ObjectSet"]["spec"]

    assert {field for field, *_ in rows("New fields")} == {
        "`spec.progressDeadlineSeconds`",
        "`spec.template.spec.collisionProtection`",
        "`spec.collisionProtection`",
        f"`{DELETION_POLICY}: Orphan`",
        "`previous[].kind`, `previous[].group`",
    }
    assert {"progressDeadlineSeconds"} <= deployment["properties"].keys()
    assert "collisionProtection" in deployment["properties"]["template"]["properties"]["spec"]["properties"]
    assert {"progressDeadlineSeconds", "collisionProtection"} <= one_set["properties"].keys()
    assert {"kind", "group"} <= one_set["properties"]["previous"]["items"]["properties"].keys()
