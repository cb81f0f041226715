"""Carries out one program on two servers, and compares."""

from tests.bed.fixtures import chosen_server
from tests.conformance.model.excuses import excused
from tests.conformance.model.listener import Listener
from tests.conformance.model.programs import Saying
from tests.conformance.transcript.reach import Wire
from tests.conformance.transcript.script import blaming_the_sender


def carry_out(program: list[Saying], ours: Wire, theirs: Wire) -> None:
    """Send everything to both, and fail at the first difference."""
    kind = program[0].kind
    here, there = Listener(ours, kind), Listener(theirs, kind)
    for saying in program:
        lines, expected = here.send(saying), blaming_the_sender(there.send(saying))
        if lines != expected and chosen_server() == "real" and excused(saying, expected):
            # After this the two differ.
            return
        assert lines == expected, _difference(saying, lines, expected)


def _difference(saying: Saying, lines: list[str], expected: list[str]) -> str:
    wanted = "\n".join(f"- {line}" for line in expected if line not in lines)
    came = "\n".join(f"+ {line}" for line in lines if line not in expected)
    return f"{saying}\n{wanted}\n{came}"
