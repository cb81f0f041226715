"""Paths select what kubectl's JSONPath selects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import text

from lamina.objects.jsonpath import JsonPath, PathError, column_path_errors

_OBJ: dict[str, Any] = {
    "spec": {
        "s": "x",
        "list": [1, 2, 3],
        "names": [{"name": "a", "v": 1, "on": True}, {"name": "b", "v": 2}, {"name": "c d", "v": 3.5}],
        "map": {"a.b": "dot", "a/b": "slash"},
        "nothing": None,
        "empty": [],
        "deep": {"deep": {"s": "inner"}},
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.s",                                          ["x"]),
        (".spec['s']",                                       ["x"]),
        (".spec.missing.deeper",                             []),
        (".spec.nothing",                                    [None]),
        (".spec.list[0]",                                    [1]),
        (".spec.list[-1]",                                   [3]),
        (".spec.list[*]",                                    [1, 2, 3]),
        (".spec.list[0:2]",                                  [1, 2]),
        (".spec.list[1:]",                                   [2, 3]),
        (".spec.list[::2]",                                  [1, 3]),
        (".spec.list[0,2]",                                  [1, 3]),
        (".spec.list[1:1]",                                  []),
        (".spec.empty[*]",                                   []),
        (".spec.names[*].name",                              ["a", "b", "c d"]),
        (r".spec.map['a\.b']",                               ["dot"]),
        (".spec.map['a.b']",                                 []),
        (".spec.map.a/b",                                    ["slash"]),
        (".spec.map.*",                                      ["dot", "slash"]),
        ('.status.conditions[?(@.type=="Ready")].status',    ["True"]),
        (".status.conditions[?(@.type!='Ready')].type",      ["Other"]),
        (".spec.names[?(@.v>1)].name",                       PathError),
        (".spec.names[?(@.on)].name",                        ["a"]),
        ('.spec.names[?(@.name=="c d")].v',                  [3.5]),
        ("..s",                                              ["x", "inner"]),
        (".spec.deep..s",                                    ["inner"]),
        (".spec.list[9]",                                    PathError),
        (".spec.s[0]",                                       PathError),
        (".spec.s}{.spec.list",                              ["x"]),
    ],
)  # fmt: skip
def test_a_path_finds_its_values_in_order(path: str, found: Any) -> None:
    if found is PathError:
        with pytest.raises(PathError):
            JsonPath(path).find(_OBJ)
    else:
        assert JsonPath(path).find(_OBJ) == found


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(", ".a[?(@.b==1]", ".a{.b", '.a["b"]', '.a "b'])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        JsonPath(path)


def test_a_definition_looks_only_at_how_a_path_starts() -> None:
    assert column_path_errors("") == ["must not be empty"]
    assert column_path_errors("spec.a") == ["must be a simple json path starting with ."]
    assert column_path_errors(".spec[") == []


@given(text(alphabet=".[]*?()@'\"\\:,=!<>{}$ab01- ", max_size=20))
def test_any_text_is_a_path_or_is_not(path: str) -> None:
    try:
        found = JsonPath(path).find(_OBJ)
    except PathError:
        return
    assert isinstance(found, list)
