"""Values are printed in messages as Go prints them."""

from typing import Any

import pytest

from lamina.objects.go_quote import quoted, shown


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("plain",              '"plain"'),
        ('say "hi"\n\\',       r'"say \"hi\"\n\\"'),
        ("\a\b\t\v\f\r",       r'"\a\b\t\v\f\r"'),
        ("\x00\x7f",           r'"\x00\x7f"'),
        ("é\u200b\xa0",        r'"é\u200b\u00a0"'),
        ("\U000e0001",         r'"\U000e0001"'),
        (True,                 "true"),
        (7,                    "7"),
        (1.0,                  "1"),
        (0.1,                  "0.1"),
        (1e21,                 "1e+21"),
        (1.5e-7,               "1.5e-07"),
        (1000000.0,            "1e+06"),
        (12345.25,             "12345.25"),
        (None,                 "null"),
        ({"a": "<b>"},         r'{"a":"\u003cb\u003e"}'),
        (["x", 1],             '["x",1]'),
    ],
)  # fmt: skip
def test_a_value_in_a_message_reads_as_on_a_real_server(value: Any, printed: str) -> None:
    assert shown(value) == printed


def test_a_quoted_text_keeps_what_can_be_seen() -> None:
    assert quoted("ünïcödé ☃") == '"ünïcödé ☃"'
