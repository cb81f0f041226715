"""The plurals of generated kinds, against those of upstream's library."""

from pathlib import Path

import pytest

from lamina.graph.language.pluralize import pluralize
from tests.bed.scenarios import check

RECORDED = Path(__file__).with_name("plurals.txt").read_text()
WORDS = [entry.split() for line in RECORDED.splitlines()[1:] for entry in line.split(",") if entry.strip()]


@check("RG-5")
@pytest.mark.parametrize(
    ("word", "plural"),
    [
        ("policy", "policies"),
        ("gateway", "gateways"),
        ("proxy", "proxies"),
        ("index", "indices"),
        ("matrix", "matrices"),
        ("status", "statuses"),
        ("bus", "buses"),
        ("class", "classes"),
        ("ingress", "ingresses"),
        ("patch", "patches"),
        ("mesh", "meshes"),
        ("box", "boxes"),
        ("database", "databases"),
        ("analysis", "analyses"),
        ("knife", "knives"),
        ("life", "lives"),
        ("leaf", "leaves"),
        ("datum", "data"),
        ("series", "series"),
        ("redis", "redis"),
        ("kubernetes", "kubernetes"),
        ("ackcontrollers", "ackcontrollers"),
        ("app", "apps"),
    ],
)
def test_a_kind_has_its_english_plural(word: str, plural: str) -> None:
    assert pluralize(word) == plural


def test_every_recorded_plural_is_upstreams() -> None:
    assert len(WORDS) > 700
    assert {word: pluralize(word) for word, _ in WORDS} == dict(WORDS)


@pytest.mark.parametrize("word", ["dns", "https", "ids", "ips", "mpls"])
def test_an_acronym_that_ends_in_s_stays_as_it_is_where_upstream_makes_an_invalid_name(word: str) -> None:
    assert pluralize(word) == word
