"""Names of tests, and the expressions that pick them."""

import re

import pytest

from tests.bed.e2e import due, focus, judge, wanted

NAME = "Watchers should be able to start watching from a specific resource version"
CHUNKS = "Servers with support for API chunking should return chunks of results for list calls"


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        (f"Kubernetes e2e suite [sig-api-machinery] {NAME} [Conformance]",                    True),
        (f"Kubernetes e2e suite [sig-api-machinery] {NAME}",                                  True),
        (f"Kubernetes e2e suite [sig-api-machinery] {NAME} and then some [Conformance]",      False),
        (f"Kubernetes e2e suite [sig-api-machinery] Other {NAME} [Conformance]",              False),
        ("Kubernetes e2e suite [sig-api-machinery] Watchers [Serial] should be able to start "
         "watching from a specific resource version [Conformance]",                           True),
    ],
)  # fmt: skip
def test_a_name_picks_its_own_test_and_no_other(text: str, picked: bool) -> None:
    assert bool(re.search(focus([CHUNKS, NAME]), text)) is picked


def test_a_name_is_no_expression() -> None:
    assert not re.search(focus(["a.c (x|y)"]), "s [sig-apps] abc x")
    assert re.search(focus(["a.c (x|y)"]), "s [sig-apps] a.c (x|y) [Slow]")


def test_a_tag_in_a_list_picks_the_test_with_and_without_it() -> None:
    assert re.search(focus(["It works [Slow]"]), "s [sig-apps] It works [Slow] [Conformance]")


def test_everything_due_is_wanted() -> None:
    assert set(due()) <= set(wanted())
    assert len(set(wanted())) == len(wanted()) >= 64


def test_a_list_without_a_name_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge("embedded", [], shards=1) == 1
    assert "no test is named" in capsys.readouterr().out
