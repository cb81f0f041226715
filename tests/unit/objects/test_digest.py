"""Equal values have equal hashes, and hashes are safe in names."""

from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, integers, recursive, sampled_from, text

from lamina.objects.digest import SAFE, canonical, digest, safe, short
from lamina.objects.names import label_value

_JSON = recursive(
    integers(-9, 9) | text(max_size=3), lambda inner: dictionaries(sampled_from("abcd"), inner, max_size=3)
)


@given(dictionaries(sampled_from("abcdef"), _JSON))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any]) -> None:
    other = dict(reversed(value.items()))

    assert canonical(value) == canonical(other)
    assert digest(value) == digest(other)


@given(_JSON)
def test_a_short_mark_can_be_a_label(value: Any) -> None:
    mark = short(value)

    assert len(mark) == 10
    assert set(mark) <= set(SAFE)
    assert not label_value(mark)


def test_a_text_is_made_safe_as_kubernetes_does() -> None:
    assert safe("abc") == "".join(SAFE[ord(letter) % len(SAFE)] for letter in "abc")
    assert set(safe("aeiou")) <= set(SAFE)
