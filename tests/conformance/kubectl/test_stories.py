"""
The exact output of kubectl.

Output and exit code are compared with those on a real server. The scripts are the text
files beside this one.
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
def test_kubectl_says_what_it_says_on_a_real_server(stage: Stage, script: Script, story: Story) -> None:
    told = differences(play(story, stage, script.words), embedded=stage.embedded)

    assert not told, f"\n{told}"
