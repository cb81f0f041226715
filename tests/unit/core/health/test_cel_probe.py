"""Probes that are CEL expressions."""

import subprocess
import sys

import pytest

from lamina.core.health.cel_probe import cel_probe
from lamina.core.health.probe import HEALTHY, unhealthy, unknown
from lamina.errors import SpecError
from lamina.objects.types import Obj

POD: Obj = {
    "metadata": {"name": "web-1", "labels": {"app": "web"}, "annotations": {"site": "https://example.com/a"}},
    "spec": {"replicas": 2, "ports": [80, 443]},
    "status": {
        "phase": "Running",
        "replicas": 2,
        "startTime": "2026-08-01T23:30:00Z",
        "conditions": [{"type": "On", "status": "False"}, {"type": "Ready", "status": "True"}],
    },
}


@pytest.mark.parametrize(
    "rule",
    [
        "true",
        'self.status.phase == "Running"',
        "self.status.replicas >= self.spec.replicas",
        "self.status.replicas > 1.5",
        "!has(self.status.missing)",
        'self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")',
        'self.status.conditions.existsOne(c, c.type == "Ready")',
        "self.missing || true",
    ],
)
def test_an_object_is_healthy_where_the_expression_is_true(rule: str) -> None:
    assert cel_probe(rule, "not ready")(POD) == HEALTHY


@pytest.mark.parametrize(
    ("library", "rule"),
    [
        ("strings",             'self.metadata.name.split("-")[1] == "1" && self.metadata.name.charAt(0) == "w"'),
        ("regular expressions", 'self.metadata.name.find("[0-9]+") == "1"'),
        ("lists",               "self.spec.ports.isSorted() && [1, 2].sum() == 3"),
        ("URLs",                'url(self.metadata.annotations.site).getHost() == "example.com"'),
        ("times, in UTC",       "timestamp(self.status.startTime).getHours() == 23"),
    ],
)  # fmt: skip
def test_an_expression_has_the_libraries_of_upstream(library: str, rule: str) -> None:
    assert cel_probe(rule, "not ready")(POD) == HEALTHY


@pytest.mark.parametrize(
    "rule", ["false", 'self.status.phase == "Pending"', 'self.metadata.labels.exists(k, k == "tier")']
)
def test_an_object_is_unhealthy_with_the_message_where_the_expression_is_false(rule: str) -> None:
    assert cel_probe(rule, "not ready")(POD) == unhealthy("not ready")


@pytest.mark.parametrize(
    ("rule", "because"),
    [
        ('self.status.missing == "x"',                     "no such key: missing"),
        ("self.status.phase > 1",                          "no such overload"),
        ("self.status.phase && true",                      "no such overload"),
        ("self.spec.ports[7] == 80",                       "index out of bounds: 7"),
        ('int(self.metadata.name) == 1',                   "type conversion error from 'string' to 'int'"),
        ('self.metadata.name.matches("[")',                "error parsing regexp: missing closing ]: `[`"),
        (r'self.metadata.name.matches("\\C")',             r"error parsing regexp: invalid escape sequence: `\C`"),
    ],
)  # fmt: skip
def test_an_expression_that_fails_is_unknown(rule: str, because: str) -> None:
    assert cel_probe(rule, "not ready")(POD) == unknown(f"CEL program failed: {because}")


def test_an_expression_that_costs_too_much_is_unknown() -> None:
    rule = "self.a.all(x, self.a.all(y, self.a.all(z, x == y || y == z || true)))"

    assert cel_probe(rule, "never said")({"a": list(range(1000))}) == unknown(
        "CEL program failed: operation cancelled: actual cost limit exceeded"
    )


def test_one_probe_is_asked_about_many_objects() -> None:
    probe = cel_probe("self.n % 2 == 0", "odd")
    fails = unknown("CEL program failed: no such key: n")

    assert [probe(obj) for obj in ({"n": 0}, {"n": 1}, {}, {"n": 2})] == [
        HEALTHY, unhealthy("odd"), fails, HEALTHY,
    ]  # fmt: skip


CORRECT_IT = 'correct it; the object is the variable "self"'


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("slf.x == 1",           "undeclared reference to 'slf' (in container '') (line 1, column 1), did you mean 'self'?"),
        ("true &&\n a == b",     "undeclared reference to 'a' (in container '') (line 2, column 2); "
                                 "undeclared reference to 'b' (in container '') (line 2, column 7)"),
        ("self.x == (1",         "Syntax error: missing ')' at '<EOF>' (line 1, column 13)"),
        ("1 < 1.5",              "found no matching overload for '_<_' applied to '(int, double)' (line 1, column 3)"),
        ("[1, 'a'] == []",       "expected type 'int' but found 'string' (line 1, column 5)"),
        ("self.?x.hasValue()",   "unsupported syntax '.?' (line 1, column 5)"),
        ("'%d'.format([1]) == ''", "undeclared reference to 'format' (in container '') (line 1, column 12)"),
        ("quantity('1') == self", "undeclared reference to 'quantity' (in container '') (line 1, column 9)"),
    ],
)  # fmt: skip
def test_an_expression_that_does_not_compile_is_invalid(rule: str, wrong: str) -> None:
    with pytest.raises(SpecError) as raised:
        cel_probe(rule, "not ready")

    assert str(raised.value) == f'CEL expression "{rule}" does not compile: {wrong}: {CORRECT_IT}'


@pytest.mark.parametrize(
    "rule", ["", " ", "self.", "(" * 300 + "true" + ")" * 300, "self" + ".a" * 400 + " == 1"]
)
def test_an_expression_that_cannot_be_parsed_is_invalid(rule: str) -> None:
    with pytest.raises(SpecError, match="does not compile: .*: correct it"):
        cel_probe(rule, "not ready")


@pytest.mark.parametrize(
    ("rule", "type_"),
    [("self.status.ready", "dyn"), ("size(self.spec)", "int"), ("'yes'", "string"), ("[true]", "list(bool)")],
)
def test_an_expression_has_to_be_a_bool(rule: str, type_: str) -> None:
    with pytest.raises(SpecError) as raised:
        cel_probe(rule, "not ready")

    assert str(raised.value) == (
        f'CEL expression must evaluate to a bool, and the type of "{rule}" is {type_}: '
        'compare its value, as in "self.status.ready == true"'
    )


def test_a_message_shows_the_beginning_of_a_long_expression() -> None:
    with pytest.raises(SpecError, match=r'^CEL expression "1{200}\.\.\." does not compile'):
        cel_probe("1" * 5000, "not ready")


def test_cel_is_not_imported_before_there_is_an_expression() -> None:
    code = (
        "import sys, lamina.core.health.cel_probe; "
        "print(any(one.startswith('lamina.cel.') for one in sys.modules))"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
