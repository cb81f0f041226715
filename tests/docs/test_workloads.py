"""The page on workloads agrees with the code."""

import re
from pathlib import Path

import pytest

from lamina.actors.stages.stage import OPERATORS
from lamina.actors.stages.template import FORMS
from lamina.control_plane.load_stages import load_stages
from tests.unit.actors.stages.life import Life, container, pod
from tools.stages import FOLDER, ready_made

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "workloads.md").read_text()
DEFAULTS = (ROOT / "src" / "lamina" / "actors" / "stages" / "defaults.yaml").read_text()


def triggers() -> list[tuple[str, str]]:
    """Return each row of the table of failures: the manifest, and the status of the pod."""
    table = PAGE.split("## Failure on request")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    return [(cells[0].strip().strip("`"), cells[2].strip()) for cells in rows]


@pytest.mark.parametrize(("written", "said"), triggers())
def test_a_minute_later_a_pod_says_what_the_page_says(written: str, said: str) -> None:
    key, value = written.split(": ", 1)
    value = value.strip('"')
    match key:
        case "image":
            made = pod(container(value))
        case "args":
            made = pod(container(args=[value.strip("[]")]))
        case _:
            made = pod(annotations={key: value})
    life = Life(made).pass_time(60)
    phase, state, ready = said.split(", ")

    assert life.phase == phase
    assert state in ("either", life.state())
    assert ready in ("either", "ready" if life.is_ready else "not ready")


def test_every_annotation_that_matters_is_on_the_page_and_no_other() -> None:
    annotations = re.compile(r"sim/[a-z-]+")

    table = PAGE.split("## Failure on request")[1].split("\n## ")[0]
    assert set(annotations.findall(table)) == {*annotations.findall(DEFAULTS), "sim/not-ready"}


def test_every_form_and_operator_is_on_the_page() -> None:
    assert all(f"{{{form}:" in PAGE for form in FORMS)
    assert all(f"`{operator}`" in PAGE for operator in OPERATORS)


def test_the_stage_on_the_page_can_be_read(tmp_path: Path) -> None:
    written = tmp_path / "stages.yaml"
    written.write_text(PAGE.split("```yaml\n")[1].split("```")[0])

    [stage] = load_stages(written)

    assert stage.name == "widget-made"


def test_the_stages_that_every_start_reads_are_those_that_people_read() -> None:
    assert (FOLDER / "defaults.json").read_bytes() == ready_made(), "run `make stages`"
