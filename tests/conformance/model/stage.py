"""Carrying out one program on two servers at once, and comparing."""

from tests.bed.fixtures import chosen_server
from tests.conformance.model.excuses import excused
from tests.conformance.model.listener import Listener
from tests.conformance.model.programs import Saying
from tests.conformance.transcript.reach import Wire
from tests.conformance.transcript.script import blaming_the_sender


def carry_out(program: list[Saying], ours: Wire, theirs: Wire) -> None:
    """Say everything to both, and fail with the first thing that they answer differently."""
    kind = program[0].kind
    here, there = Listener(ours, kind), Listener(theirs, kind)
    for saying in program:
        heard, expected = here.hear(saying), blaming_the_sender(there.hear(saying))
        if heard != expected and chosen_server() == "real" and excused(saying, expected):
            # From here on the two tell different stories.
            return
        assert heard == expected, _difference(saying, heard, expected)


def _difference(saying: Saying, heard: list[str], expected: list[str]) -> str:
    wanted = "\n".join(f"- {line}" for line in expected if line not in heard)
    came = "\n".join(f"+ {line}" for line in heard if line not in expected)
    return f"{saying}\n{wanted}\n{came}"
