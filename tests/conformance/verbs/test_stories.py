"""
Every verb, with exact responses.

The stories in the text files beside this one run on the embedded server, over HTTP and in
process, and on a real one if LAMINA_TEST_SERVER selects it.
`python -m tests.conformance.transcript` records them again.
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
    # The real server does not run in this process.

    @pytest.mark.parametrize(("script", "story"), _rows(inside=True))
    def test_the_embedded_server_answers_alike_in_process(
        inside: Stage, script: Script, story: Story
    ) -> None:
        told = differences(play(story, inside, script.words), embedded=True)

        assert not told, f"\n{told}"
