"""The same requests with the embedded server, a real one and the model."""

import pytest

from tests.conformance.model.conversation import Conversation, Said
from tests.conformance.model.corpus import read_conversations
from tests.conformance.transcript.reach import Wire


@pytest.mark.parametrize(
    "said", [pytest.param(one, id=str(line)) for line, one in enumerate(read_conversations(), 1)]
)
def test_a_server_does_what_the_model_does(wire: Wire, said: list[Said]) -> None:
    Conversation(wire).repeat(said)
