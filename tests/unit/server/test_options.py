"""What a request asks beside its body."""

import pytest

from lamina.errors import BadRequest, Invalid
from lamina.server.options import deadline, go_duration, write_options
from lamina.server.request import Request


def request(query: str = "", agent: str = "kubectl/v1.35 (linux)") -> Request:
    return Request("POST", "/", query, {"user-agent": agent})


def test_who_writes_is_the_first_word_of_the_user_agent_unless_named() -> None:
    assert write_options(request(), "CreateOptions").manager == "kubectl"
    assert write_options(request("fieldManager=me"), "CreateOptions").manager == "me"
    assert write_options(request(agent=""), "CreateOptions").manager == "unknown"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("dryRun=bad", "dryRun"),
        ("fieldValidation=Bogus", "fieldValidation"),
        ("fieldManager=" + "x" * 129, "fieldManager"),
        ("fieldManager=a%00b", "fieldManager"),
    ],
)
def test_nonsense_is_refused_by_the_name_of_the_option(query: str, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        write_options(request(query), "CreateOptions")

    assert [cause.field for cause in refused.value.causes] == [field]
    assert refused.value.details["kind"] == "CreateOptions"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("34s", 34.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("100ms", 0.1), (".5s", 0.5), ("1.h", 3600.0), ("+2s", 2.0),
     ("1h1m1s1ms1us1ns", 3661.001001001), ("1µs", 1e-6), ("0", 0.0), ("-0", 0.0), ("0s", 0.0), ("-1s", -1.0)],
)  # fmt: skip
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("s", 'invalid duration "s"'),
        (".s", 'invalid duration ".s"'),
        (" 5s", 'invalid duration " 5s"'),
        ("µs", r'invalid duration "\xc2\xb5s"'),
        ('"', r'invalid duration "\""'),
        ("99999999999h", 'invalid duration "99999999999h"'),
        ("5", 'missing unit in duration "5"'),
        ("5s5", 'missing unit in duration "5s5"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        ("1 s", 'unknown unit " s" in duration "1 s"'),
    ],
)
def test_what_is_no_duration_is_complained_about_as_go_does(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as nonsense:
        go_duration(text)

    assert str(nonsense.value) == f"time: {complaint}"


def test_a_deadline_is_what_the_request_allows() -> None:
    assert deadline(request("timeout=34s")) == 34.0
    assert deadline(request("timeout=0s")) == 60.0
    with pytest.raises(BadRequest, match="invalid timeout specified in the request URL"):
        deadline(request("timeout=soon"))


def test_a_flag_is_on_unless_it_says_off() -> None:
    for on in ("watch=1", "watch=true", "watch=True", "watch=", "watch"):
        assert request(on).flag("watch"), on
    for off in ("watch=0", "watch=false", ""):
        assert not request(off).flag("watch"), off
