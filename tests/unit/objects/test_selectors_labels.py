"""Label selectors match as in Kubernetes, and invalid ones have kube-apiserver's messages."""

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, lists, sampled_from, text

from lamina.errors import BadRequest
from lamina.objects.selectors import EVERYTHING, NOTHING, from_labels, from_object, parse_label_selector

_LABELS = {"app": "web", "tier": "front", "empty": "", "number": "7"}
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("",                              True),
        ("app=web",                       True),
        ("app==web",                      True),
        ("app!=web",                      False),
        ("missing!=web",                  True),
        ("app",                           True),
        ("!app",                          False),
        ("!missing",                      True),
        ("app in (api, web)",             True),
        ("app in (api)",                  False),
        ("app notin (api)",               True),
        ("missing notin (api)",           True),
        ("missing in (api)",              False),
        ("app=web,tier=front",            True),
        ("app=web,tier=back",             False),
        ("app = web , tier in (front,)",  True),
        ("empty=",                        True),
        ("empty in ()",                   True),
        ("missing=",                      False),
        ("missing in ()",                 False),
        ("number>6",                      True),
        ("number>7",                      False),
        ("number<8,app,!missing",         True),
        ("app>6",                         False),
        ("in=in",                         False),
        ("app in (in,notin,web)",         True),
    ],
)  # fmt: skip
def test_a_selector_matches_the_labels_it_describes(selector: str, matches: bool) -> None:
    assert parse_label_selector(selector).matches(_LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("a=b_", f'unable to parse requirement: values[0][a]: Invalid value: "b_": {_VALUE_RULE}'),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": {_KEY_RULE}'),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (a=", "unable to parse requirement: found '=', expected: ',' or ')'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_selector_that_makes_no_sense_is_refused_in_the_servers_words(selector: str, told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_label_selector(selector)

    assert refused.value.message == told


def test_a_selector_object_matches_labels_and_expressions_together() -> None:
    selector = from_object(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ],
        }
    )

    assert selector.matches(_LABELS)
    assert not selector.matches({**_LABELS, "gone": "no"})
    assert str(selector) == "app=web,!gone,tier in (back,front)"


def test_an_absent_selector_object_matches_nothing_and_an_empty_one_everything() -> None:
    assert from_object(None) is NOTHING
    assert not NOTHING.matches({})
    assert from_object({}).is_everything
    assert EVERYTHING.matches(None)


def test_a_selector_object_with_an_unknown_operator_is_refused() -> None:
    with pytest.raises(BadRequest, match='"Near" is not a valid label selector operator'):
        from_object({"matchExpressions": [{"key": "a", "operator": "Near"}]})


@given(
    dictionaries(sampled_from("abc"), sampled_from(["", "x", "y"])),
    dictionaries(sampled_from("abc"), sampled_from("xy")),
)
def test_a_plain_map_selects_what_holds_all_of_it(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert from_labels(wanted).matches(labels) is (wanted.items() <= labels.items())


@given(lists(sampled_from(["a", "b=c", "!d", "e in (f,g)", "h!=i", "j notin (k)"]), max_size=5))
def test_what_a_selector_prints_reads_as_the_same_selector(terms: list[str]) -> None:
    selector = parse_label_selector(",".join(terms))

    assert parse_label_selector(str(selector)) == selector


@given(text(max_size=30))
def test_any_text_is_a_selector_or_a_bad_request(selector: str) -> None:
    try:
        parse_label_selector(selector).matches(_LABELS)
    except BadRequest as refused:
        assert refused.message
