"""Records programs and sequences of requests."""

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.model.beacons import define_beacons
from tests.conformance.model.contents import KINDS
from tests.conformance.model.conversation import Conversation, Said
from tests.conformance.model.corpus import write_conversations, write_programs
from tests.conformance.model.programs import Saying, programs
from tests.conformance.transcript.inside import in_process
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.reach import Wire

T = TypeVar("T")
# Far more than are recorded: the first ones are simple, and many are similar.
_MORE = 10


def record(chosen: int, count: int, conversations: int) -> None:
    """Record a number of programs, equally many of each kind, and of sequences run with the embedded server."""
    write_programs(_programs(chosen, count))
    with in_process() as wire:
        define_kinds(wire)
        define_beacons(wire)
        write_conversations(_conversations(chosen, conversations, wire))


def _programs(chosen: int, count: int) -> list[list[Saying]]:
    made: dict[str, list[list[Saying]]] = {kind: [] for kind in sorted(KINDS)}

    @seed(chosen)
    @_settings(count * _MORE)
    @given(programs())
    def make(program: list[Saying]) -> None:
        if program not in made[program[0].kind]:
            made[program[0].kind].append(program)

    make()
    return [program for some in made.values() for program in _spread(some, count // len(made))]


def _conversations(chosen: int, count: int, wire: Wire) -> list[list[Said]]:
    made: list[list[Said]] = []

    class Recorded(Conversation):
        def teardown(self) -> None:
            made.append(self.said)

    @seed(chosen)
    def begin() -> Conversation:
        return Recorded(wire)

    run_state_machine_as_test(begin, settings=_settings(count * _MORE))  # type: ignore[arg-type]
    return _spread(made, count)


def _spread(some: list[T], count: int) -> list[T]:
    """Return some of each part of a list."""
    return [some[index * len(some) // count] for index in range(min(count, len(some)))]


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=False,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
