"""Is this object well, and how do we know."""

import pytest

from lamina.core.probe import WELL, Answer, Probe, all_of, has_condition, has_observed_its_spec
from lamina.objects.types import Obj

READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}]}}
LATE = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Down"}]}}


@pytest.mark.parametrize(
    ("obj", "probe", "answer", "because"),
    [
        (READY, has_condition("Ready"),               Answer.TRUE,    ""),
        (READY, has_condition("Ready", "True"),       Answer.TRUE,    ""),
        (READY, has_condition("Ready", "True", "Up"), Answer.TRUE,    ""),
        ({},    has_condition("Ready"),               Answer.UNKNOWN, 'required condition type missing: "Ready"'),
        (LATE,  has_condition("Ready", "True"),       Answer.FALSE,   '"Ready" condition status is "False" (want "True")'),
        (LATE,  has_condition("Ready", None, "Up"),   Answer.FALSE,   '"Ready" condition reason is "Down" (want "Up")'),
    ],
)  # fmt: skip
def test_a_condition_is_asked_for(obj: Obj, probe: Probe, answer: Answer, because: str) -> None:
    verdict = probe(obj)

    assert (verdict.answer, verdict.because) == (answer, because)


@pytest.mark.parametrize(
    ("generation", "seen", "answer"),
    [(2, 2, Answer.TRUE), (2, 1, Answer.UNKNOWN), (2, 0, Answer.TRUE), (2, None, Answer.TRUE)],
)
def test_a_status_about_an_older_generation_is_no_answer(generation: int, seen: int, answer: Answer) -> None:
    obj = {"metadata": {"generation": generation}, "status": {"observedGeneration": seen}}

    assert has_observed_its_spec(obj).answer is answer


def test_several_probes_say_what_the_first_unwell_one_says() -> None:
    both = all_of([has_condition("Ready", "True"), has_condition("Synced")])

    assert both(LATE).because.startswith('"Ready"')
    assert both(READY).because == 'required condition type missing: "Synced"'
    assert all_of([])({}) == WELL
