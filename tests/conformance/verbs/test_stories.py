"""
Every verb, word for word.

The stories of the text files beside this one are played on the embedded server,
over HTTP and in process, and on a real one where LAMINA_TEST_SERVER says so.
`python -m tests.conformance.transcript` records them anew.
"""

from pathlib import Path

import pytest

from tests.bed.fixtures import chosen_server
from tests.conformance.transcript.play import Stage, differences, play
from tests.conformance.transcript.script import Script, Story, read_script

SCRIPTS = [read_script(path) for path in sorted(Path(__file__).parent.glob("*.txt"))]
OVER_HTTP = "# over http"


def _rows(*, inside: bool) -> list[object]:
    return [
        pytest.param(script, story, id=f"{script.path.stem}: {story.title}")
        for script in SCRIPTS
        if not (inside and OVER_HTTP in script.head)
        for story in script.stories
    ]


@pytest.mark.parametrize(("script", "story"), _rows(inside=False))
def test_a_server_answers_as_a_real_one(over_http: Stage, script: Script, story: Story) -> None:
    told = differences(play(story, over_http, script.words), embedded=over_http.embedded)

    assert not told, f"\n{told}"


if chosen_server() == "embedded":
    # A real server is not in this process, and has nothing to show here.

    @pytest.mark.parametrize(("script", "story"), _rows(inside=True))
    def test_the_embedded_server_answers_alike_in_process(
        inside: Stage, script: Script, story: Story
    ) -> None:
        told = differences(play(story, inside, script.words), embedded=True)

        assert not told, f"\n{told}"
