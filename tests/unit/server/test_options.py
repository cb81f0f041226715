"""The options of a request."""

import pytest

from lamina.errors import BadRequest, Invalid
from lamina.server.admission.options import write_options
from lamina.server.http.deadline import deadline
from lamina.server.http.request import Request


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
