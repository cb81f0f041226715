"""Constants without a value, found before evaluation."""

from __future__ import annotations

import pytest

from lamina.cel.check import check
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import ConstantError
from lamina.cel.parse import parse
from lamina.cel.types import BOOL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int('abc') == 1", "type conversion error from 'string' to 'int'"),
        ("true || int('abc') == 1", "type conversion error from 'string' to 'int'"),
        ("int(dyn('abc')) == 1", "type conversion error from 'string' to 'int'"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("[1].all(x, bool('maybe'))", "type conversion error from 'string' to 'bool'"),
        ("'a'.find('[') == ''", "error parsing regexp: missing closing ]: `[`"),
        (r"'a'.find('\\C') == ''", r"error parsing regexp: invalid escape sequence: `\C`"),
    ],
)
def test_kubernetes_refuses_a_constant_without_a_value_even_where_it_is_never_needed(
    text: str, message: str
) -> None:
    with pytest.raises(ConstantError) as refused:
        check(parse(text, KUBERNETES), KUBERNETES)
    assert str(refused.value) == message
    assert refused.value.shown.startswith("ERROR: <input>:1:")


@pytest.mark.parametrize("text", ["1 / 0 == 1", "[1][5] == 1", "int('12') == 12", "string(1) == '1'"])
def test_only_conversions_are_carried_out_beforehand(text: str) -> None:
    assert check(parse(text, KUBERNETES), KUBERNETES).result == BOOL


def test_elsewhere_it_is_an_error_when_it_is_evaluated() -> None:
    assert check(parse("true || int('abc') == 1", PLAIN), PLAIN).result == BOOL
