"""Which checks are run where."""

import pytest

from tests.bed import scenarios
from tests.bed.scenarios import KNOWN, Record, is_due, listed, table
from tests.bed.server import Which


@pytest.mark.parametrize(
    ("asked", "which",    "identifier", "due"),
    [
        (None,    "real",     "C01",    True),
        (None,    "real",     "C70",    True),
        ("C70",   "real",     "C70",    True),
        ("C70",   "real",     "C01",    False),
        ("all",   "embedded", "C34",    True),
        ("none",  "embedded", "C01",    False),
        (None,    "embedded", "C02",    True),
        (None,    "embedded", "C03",    False),
    ],
)  # fmt: skip
def test_what_is_run_follows_the_list_the_server_and_the_request(
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    which: Which,
    identifier: str,
    due: bool,
) -> None:
    monkeypatch.setattr(scenarios, "listed", lambda: ("C02",))
    if asked is None:
        monkeypatch.delenv("LAMINA_TEST_CHECKS", raising=False)
    else:
        monkeypatch.setenv("LAMINA_TEST_CHECKS", asked)

    assert is_due(identifier, which) is due


def test_everything_listed_is_known_and_listed_once() -> None:
    assert set(listed()) <= set(KNOWN)
    assert len(set(listed())) == len(listed())


def test_an_id_without_a_passed_test_is_not_ok() -> None:
    assert Record(needs=None, tests=1).verdict == "-"
    assert Record(needs=None, tests=2, passed=1, failures=["why"]).verdict == "FAIL"
    assert Record(needs=None, tests=1, passed=1).verdict == "ok"


def test_both_results_stand_side_by_side_with_what_the_tests_show() -> None:
    ours = {
        "C01": Record(needs=None, tests=1, passed=1, shows=["it is so"]),
        "C03": Record(needs="pods", tests=1),
    }
    theirs = {"C01": Record(needs=None, tests=1, shows=["it is so"], elsewhere=["it is so: nobody can"])}

    told = list(table({"embedded": ours, "real": theirs}, ["C01", "C02"]))

    assert told[:5] == [
        "        embedded  real      ",
        "C01     ok        -         it is so",
        "        not on the real server: it is so: nobody can",
        "C02     no test   no test   ",
        "C03     open: needs pods",
    ]
