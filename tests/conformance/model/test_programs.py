"""
The same program on two servers.

Programs run on the embedded server, in process, and on another: the real one if
LAMINA_TEST_SERVER selects it, and otherwise the embedded one over HTTP. All responses have
to be equal.
"""

import pytest

from tests.conformance.model.corpus import read_programs
from tests.conformance.model.programs import Saying
from tests.conformance.model.stage import carry_out
from tests.conformance.transcript.reach import Wire


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=f"{line}-{one[0].kind}") for line, one in enumerate(read_programs(), 1)],
)
def test_a_program_means_the_same_everywhere(ours: Wire, theirs: Wire, program: list[Saying]) -> None:
    carry_out(program, ours, theirs)
