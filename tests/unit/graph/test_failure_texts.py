"""What messages of failed evaluations show: no values of other objects than the instance."""

from typing import Any

import pytest

from lamina.graph.evaluate import Failed, Pending, Readiness, ready, render
from tests.unit.graph.graphs import bucket, compiled, reference, resource, scoped

SPEC = {"name": "string", "free": "object"}
SECRET = {"data": {"p": "aHVudGVyMg=="}}
HIDDEN = "the value is not shown)"


def because(text: str, **observed: Any) -> Pending | Failed:
    """Return why an expression in a field has no value, where `s` is a Secret with the data `p: hunter2`."""
    graph = compiled(
        bucket("a", spec={"free": {"x": text}}),
        bucket("b"),
        reference("s", kind="Secret", name="s"),
        spec=SPEC,
    )
    found = render(graph, graph.nodes["a"], scoped(graph, None, {"s": [SECRET], **observed}))
    assert isinstance(found, Pending | Failed), found
    return found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": "b"}[P]', "waits for data: no such key (line 1, column 11; "),
        ("[1, 2][size(P)]", "waits for data: index out of bounds (line 1, column 7; "),
        ("url(P).getHost()", "failed: URL parse error during conversion from string (line 1, column 4; "),
        ("string(ip(P))", "failed: parse error during conversion from string (line 1, column 10; "),
        ("string(cidr(P))", "failed: network address parse error during conversion from string (line 1, "),
        ('"a".matches(P + "(")', "failed: error parsing regexp (line 1, column 12; "),
        ("json.unmarshal(P)", "failed: failed to parse JSON (line 1, column 15; "),
        ("semver(P).major()", "failed: it cannot be evaluated with these values (line 1, column 7; "),
        ("timestamp('2024-01-01T00:00:00Z').getHours(P)", "failed: unknown time zone (line 1, "),
    ],
)  # fmt: skip
def test_a_value_of_another_object_is_not_shown(text: str, said: str) -> None:
    found = because("${" + text.replace("P", "string(s.data.p)") + "}")

    assert "hunter2" not in found.because
    assert said in found.because and found.because.endswith(HIDDEN)
    assert isinstance(found, Pending) is ("waits for data" in said)


def test_a_value_that_an_iterator_has_is_not_shown() -> None:
    fields = {
        "metadata": {"name": "${x}"},
        "forEach": [{"x": "${[string(s.data.p)]}"}],
        "spec": {"free": {"x": "${url(x).getHost()}"}},
    }
    graph = compiled(bucket("a", **fields), reference("s", kind="Secret", name="s"), spec=SPEC)
    found = render(graph, graph.nodes["a"], scoped(graph, None, {"s": [SECRET]}))

    assert isinstance(found, Failed) and "hunter2" not in found.because


def test_a_value_is_not_shown_by_a_condition_either() -> None:
    secret = resource("s", "v1", "Secret", readyWhen=['${{"a": true}[string(s.data.p)]}'])
    graph = compiled(secret, spec=SPEC)
    found = ready(graph, graph.nodes["s"], scoped(graph), [SECRET])

    assert isinstance(found, Readiness) and not found.failed
    assert "no such key (line 1, column 12; the value is not shown)" in found.because


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("b.status.arn", "no such key: arn"),
        ("b.spec.tags['team']", "no such key: team"),
        ("b.status.zones[1]", "index out of bounds: 1"),
        ("string(b.spec.keep__dash__alive)", "no such key: keep-alive"),
        ("1 / b.spec.size", "division by zero"),
        ("int(b.spec.name)", "type conversion error from 'string' to 'int'"),
        ("b.spec.name.substring(99)", "index out of range: 99"),
    ],
)  # fmt: skip
def test_what_the_expression_has_itself_is_shown(text: str, said: str) -> None:
    there = {"spec": {"size": 0, "name": "x", "tags": {}}, "status": {"zones": ["a"]}}

    assert because(f"${{{text}}}", b=[there]).because.endswith(said)


def test_a_part_of_a_name_that_the_expression_has_is_not_shown() -> None:
    found = because('${{"a": "b"}[b.spec.name]}', b=[{"spec": {"name": "spe"}}])

    assert "no such key (" in found.because


def test_values_of_the_instance_are_shown() -> None:
    assert because("${url(schema.spec.name).getHost()}").because.endswith(
        'URL parse error during conversion from string: parse "web": invalid URI for request'
    )
