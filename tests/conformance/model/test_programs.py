"""
The same program on two servers.

Programs are made at random and carried out on the embedded server, in process,
and on another: the real one where LAMINA_TEST_SERVER says so, and otherwise the
embedded one over HTTP. Every answer has to be the same, word for word.
"""

from hypothesis import given

from tests.bed.fixtures import chosen_server
from tests.conformance.model.excuses import excused
from tests.conformance.model.listener import Listener
from tests.conformance.model.profile import profile, seeded
from tests.conformance.model.programs import Saying, programs
from tests.conformance.transcript.reach import Wire
from tests.conformance.transcript.script import blaming_the_sender


def test_a_program_means_the_same_everywhere(ours: Wire, theirs: Wire) -> None:
    real = chosen_server() == "real"

    @seeded
    @profile(examples=100)
    @given(programs())
    def carry_out(program: list[Saying]) -> None:
        kind = program[0].kind
        here, there = Listener(ours, kind), Listener(theirs, kind)
        for saying in program:
            heard, expected = here.hear(saying), blaming_the_sender(there.hear(saying))
            if heard != expected and real and excused(saying, expected):
                # From here on the two tell different stories.
                return
            assert heard == expected, _difference(saying, heard, expected)

    carry_out()


def _difference(saying: Saying, heard: list[str], expected: list[str]) -> str:
    wanted = "\n".join(f"- {line}" for line in expected if line not in heard)
    came = "\n".join(f"+ {line}" for line in heard if line not in expected)
    return f"{saying}\n{wanted}\n{came}"
