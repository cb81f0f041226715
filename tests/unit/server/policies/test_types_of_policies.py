"""Type checking of a policy's expressions, as in its status."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.server.admission.policies.type_check import type_check
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.kind import Kind

KINDS = builtin_kinds(lambda: datetime(2026, 1, 1, tzinfo=UTC))


def find(group: str, version: str, plural: str) -> Kind | None:
    return next(
        (one for one in KINDS if (one.group, one.version, one.plural) == (group, version, plural)), None
    )


def named(version: str, name: str) -> Kind | None:
    return next((one for one in KINDS if (one.api_version, one.kind) == (version, name)), None)


def checked(expression: str, *, group: str = "apps", resource: str = "deployments", **spec: Any) -> list[str]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}],
        **spec,
    }
    found = type_check(spec, find, named, definition)
    return [one["warning"].partition("\n")[0] for one in found.get("expressionWarnings", ())]


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('x'))",
        "object.metadata.labels['a'] == oldObject.metadata.labels['a']",
        "object.metadata.creationTimestamp < timestamp('2020-01-01T00:00:00Z')",
        "object.spec.strategy.rollingUpdate.maxSurge == 1",
        "request.operation == 'CREATE' && namespaceObject.metadata.name == 'x'",
        "true || int('abc') == 1",
    ],
)
def test_what_fits_is_not_warned_of(expression: str) -> None:
    assert checked(expression) == []


def test_what_does_not_fit_is_said_with_its_kind_and_place() -> None:
    assert checked("object.spec.replicas > '1'") == [
        "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to "
        "'(int, string)'"
    ]


def test_kinds_behind_wildcards_are_not_checked() -> None:
    assert checked("object.nope == 1", group="*") == []
    assert checked("object.nope == 1", resource="*") == []
    assert checked("object.nope == 1", resource="deployments/scale") == []


def test_variables_and_parameters_have_types_too() -> None:
    variables = [{"name": "many", "expression": "object.spec.replicas"}]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}

    assert len(checked("variables.many == 'x'", variables=variables)) == 1
    assert len(checked("params.nope == 'x'", paramKind=kind)) == 1
    assert checked("params.data.x == string(variables.many)", variables=variables, paramKind=kind) == []
