"""Validation of names, with apimachinery's messages."""

import pytest

from lamina.objects import names
from lamina.objects.names import NameRule


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (names.subdomain,          ["a", "a.b-c", "1", "a" * 253],          ["", "A", "a_b", "-a", "a..b", "a" * 254, "a\n"]),
        (names.label,              ["a", "1-2", "a" * 63],                  ["", "a.b", "a-", "a" * 64]),
        (names.label_1035,         ["a", "a-1"],                            ["1a", "", "a-", "a" * 64]),
        (names.path_segment,       ["a:b", "A B", ""],                      [".", "..", "a/b", "a%b"]),
        (names.qualified,          ["a", "A_b.c", "x.y/z", "a" * 63],       ["", "a/b/c", "/a", "a/", "X/y", "a" * 64, "-a"]),
        (names.label_value,        ["", "a", "A_.b", "a" * 63],             ["-", "a b", "a" * 64]),
        (names.config_key,         ["a", ".x", "A_b-c.d"],                  ["", ".", "..", "..a", "a/b", "a" * 254]),
        (names.environment_name,   ["A", "a b", "1", "x-y.z"],              ["", "a=b", "é"]),
        (names.port_name,          ["a", "a-1", "http"],                    ["", "1", "a--b", "-a", "A", "a" * 16]),
        (names.percent,            ["0%", "250%"],                          ["5", "%", "-1%"]),
        (names.wildcard_subdomain, ["*.a.b"],                               ["a.b", "*", "*.*.a"]),
    ],
)  # fmt: skip
def test_a_rule_lets_the_good_through_and_complains_of_the_rest(
    rule: NameRule, good: list[str], bad: list[str]
) -> None:
    assert [name for name in good if rule(name)] == []
    assert [name for name in bad if not rule(name)] == []


def test_a_prefix_may_end_in_a_hyphen() -> None:
    assert not names.in_prefix(names.subdomain, "web-")
    assert names.in_prefix(names.subdomain, "Web-")
    assert not names.in_prefix(names.path_segment, "..")


def test_the_words_for_a_bad_subdomain_are_the_servers() -> None:
    assert names.subdomain("A_b") == (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    )
