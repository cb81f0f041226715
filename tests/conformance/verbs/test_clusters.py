"""A sample of the stories on a second cluster, below a path prefix."""

from collections.abc import Iterator

import pytest

from tests.bed.fixtures import chosen_server
from tests.bed.server import Server
from tests.conformance.transcript.below import Below, second_cluster
from tests.conformance.transcript.inside import in_process
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.play import Stage, differences, play
from tests.conformance.transcript.reach import HttpWire
from tests.conformance.transcript.script import Script, Story
from tests.conformance.verbs.test_stories import OVER_HTTP, SCRIPTS

pytestmark = pytest.mark.skipif(
    chosen_server() != "embedded", reason="a real server has one cluster, and no way to another"
)

_EVERY = 6
_SAMPLE = [
    pytest.param(script, story, id=f"{script.path.stem}: {story.title}")
    for script in SCRIPTS
    if OVER_HTTP not in script.head
    for story in script.stories[::_EVERY]
]


@pytest.fixture(scope="session")
def over_http(server: Server) -> Stage:
    """A second cluster of the server, reached over HTTP as its own administrator."""
    _, token = second_cluster(HttpWire(server.url, str(server.ca_file), server.token))
    wire = Below(HttpWire(server.url, str(server.ca_file), token), "/clusters/second")
    define_kinds(wire)
    return Stage(wire=wire, embedded=True)


@pytest.fixture(scope="session")
def inside() -> Iterator[Stage]:
    """A second cluster of a server in this process."""
    with in_process() as server:
        wire, _ = second_cluster(server)
        define_kinds(wire)
        yield Stage(wire=wire, embedded=True)


@pytest.mark.parametrize(("script", "story"), _SAMPLE)
def test_a_second_cluster_answers_as_a_real_server(over_http: Stage, script: Script, story: Story) -> None:
    told = differences(play(story, over_http, script.words), embedded=True)

    assert not told, f"\n{told}"


@pytest.mark.parametrize(("script", "story"), _SAMPLE)
def test_a_second_cluster_answers_alike_in_process(inside: Stage, script: Script, story: Story) -> None:
    told = differences(play(story, inside, script.words), embedded=True)

    assert not told, f"\n{told}"
