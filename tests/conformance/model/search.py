"""
New random programs and sequences of requests.

Not part of the other tests: `python -m tests.conformance.model` runs it with a seed, and so
does `make torture`. Failing examples are shrunk and printed.
"""

from hypothesis import given
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.model.conversation import Conversation
from tests.conformance.model.profile import profile, seeded
from tests.conformance.model.programs import Saying, programs
from tests.conformance.model.stage import carry_out
from tests.conformance.transcript.reach import Wire


def test_any_program_means_the_same_everywhere(ours: Wire, theirs: Wire) -> None:
    @seeded
    @profile(examples=100)
    @given(programs())
    def search(program: list[Saying]) -> None:
        carry_out(program, ours, theirs)

    search()


def test_a_server_does_in_any_conversation_what_the_model_does(wire: Wire) -> None:
    @seeded
    def begin() -> Conversation:
        return Conversation(wire)

    run_state_machine_as_test(begin, settings=profile(examples=100, steps=40))  # type: ignore[arg-type]
