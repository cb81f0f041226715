"""
Workloads, as kubectl shows them.

kubectl's output is compared with that on a real server, whose own controllers run the
workloads. The stories are in the text files beside this one; they are recorded with
`python -m tests.conformance.transcript --pods FILE`.
"""

from pathlib import Path

import pytest

from tests.conformance.transcript.play import Stage, differences, play
from tests.conformance.transcript.script import Script, Story, read_script

SCRIPTS = [read_script(path) for path in sorted(Path(__file__).parent.glob("*.txt"))]
ROWS = [
    pytest.param(script, story, id=f"{script.path.stem}: {story.title}")
    for script in SCRIPTS
    for story in script.stories
]


@pytest.mark.parametrize(("script", "story"), ROWS)
def test_workloads_fare_as_on_a_real_server(stage: Stage, script: Script, story: Story) -> None:
    told = differences(play(story, stage, script.words), embedded=stage.embedded)

    assert not told, f"\n{told}"
