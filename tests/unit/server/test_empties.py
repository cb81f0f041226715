"""Empty lists and maps of a body: present during validation, and removed afterwards."""

from copy import deepcopy
from typing import Any

import pytest

from lamina.server.codec.empties import remove_empties, restore_empties
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.kind import Empty, Findings

INGRESS = "networking/v1.Ingress"


@pytest.mark.parametrize(
    ("obj", "empty", "held"),
    [
        ({"spec": {}},                 (("spec", "rules"), []),          {"spec": {"rules": []}}),
        ({"spec": {"rules": None}},    (("spec", "rules"), []),          {"spec": {"rules": []}}),
        ({"spec": {"rules": [1]}},     (("spec", "rules"), []),          {"spec": {"rules": [1]}}),
        ({"list": [{}, {"a": 1}]},     (("list", 1, "labels"), {}),      {"list": [{}, {"a": 1, "labels": {}}]}),
        ({"list": [{}]},               (("list", 1, "labels"), {}),      {"list": [{}]}),
        ({},                           (("spec", "rules"), []),          {}),
    ],
)  # fmt: skip
def test_what_is_put_back_can_be_taken_away_again(obj: Any, empty: Empty, held: Any) -> None:
    before = deepcopy(obj)

    done = restore_empties(obj, [empty])
    assert obj == held
    remove_empties(done)

    assert obj == before


def test_a_decoder_drops_what_is_empty_and_says_where_it_stood() -> None:
    findings = Findings()

    made = decode(
        INGRESS, {"metadata": {"name": "a", "labels": {}}, "spec": {"rules": [], "tls": []}}, findings
    )

    assert made["spec"] == {}
    assert "labels" not in made["metadata"]
    assert findings.empties == [(("metadata", "labels"), {}), (("spec", "rules"), [])]


def test_what_is_not_stated_is_not_empty() -> None:
    findings = Findings()

    decode(INGRESS, {"metadata": {"name": "a"}, "spec": {"rules": None}}, findings)

    assert findings.empties == []
