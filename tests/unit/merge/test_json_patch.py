"""JSON patch, operation by operation."""

from typing import Any

import pytest

from lamina.errors import BadRequest, Invalid, TooLarge
from lamina.merge.patches import json_patch

DOCUMENT: dict[str, Any] = {"a": {"b": 1, "c/d": 2, "e~f": 3}, "l": [1, 2, 3], "n": None, "s": "text"}


def _op(op: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **rest}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (_op("add", "/a/x", value=9), {"a": {**DOCUMENT["a"], "x": 9}}),
        (_op("add", "/a/b", value=9), {"a": {**DOCUMENT["a"], "b": 9}}),
        (_op("add", "/l/1", value=9), {"l": [1, 9, 2, 3]}),
        (_op("add", "/l/3", value=9), {"l": [1, 2, 3, 9]}),
        (_op("add", "/l/-", value=9), {"l": [1, 2, 3, 9]}),
        (_op("add", "/l/-1", value=9), {"l": [1, 2, 3, 9]}),
        (_op("add", "/l/-4", value=9), {"l": [9, 1, 2, 3]}),
        (_op("add", "/x"), {"x": None}),
        (_op("remove", "/a"), {"a": None}),
        (_op("remove", "/l/0"), {"l": [2, 3]}),
        (_op("remove", "/l/-1"), {"l": [1, 2]}),
        (_op("replace", "/l/1", value=9), {"l": [1, 9, 3]}),
        (_op("replace", "/a/c~1d", value=9), {"a": {"b": 1, "c/d": 9, "e~f": 3}}),
        (_op("replace", "/a/e~0f", value=9), {"a": {"b": 1, "c/d": 2, "e~f": 9}}),
        (_op("replace", "/a/new", value=9), {"a": {**DOCUMENT["a"], "new": 9}}),
        (_op("move", "/a/m", **{"from": "/a/b"}), {"a": {"c/d": 2, "e~f": 3, "m": 1}}),
        (_op("move", "/l/0", **{"from": "/l/2"}), {"l": [3, 1, 2]}),
        (_op("copy", "/a/m", **{"from": "/l"}), {"a": {**DOCUMENT["a"], "m": [1, 2, 3]}}),
        (_op("test", "/a/b", value=1), {}),
        (_op("test", "/n", value=None), {}),
        (_op("test", "/absent", value=None), {}),
        (_op("test", "", value=DOCUMENT), {}),
    ],
)  # fmt: skip
def test_an_operation_does_what_it_says(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    result = json_patch(DOCUMENT, [operation])

    wanted = {**DOCUMENT, **expected}
    if operation["op"] == "remove" and operation["path"] == "/a":
        del wanted["a"]
    assert result == wanted


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (_op("add", "/x/y", value=1), 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        (_op("add", "/n/y", value=1), 'add operation does not apply: doc is missing path: "/n/y": missing value'),
        (_op("add", "/s/y", value=1), 'add operation does not apply: doc is missing path: "/s/y": missing value'),
        (_op("add", "", value=1), 'add operation does not apply: doc is missing path: "": missing value'),
        (_op("add", "/l/4", value=1), "Unable to access invalid index: 4: invalid index referenced"),
        (_op("add", "/l/-5", value=1), "Unable to access invalid index: -5: invalid index referenced"),
        (_op("add", "/l/x", value=1), 'strconv.Atoi: parsing "x": invalid syntax'),
        (_op("remove", "/absent"), "Unable to remove nonexistent key: absent: missing value"),
        (_op("remove", "/l/3"), "Unable to access invalid index: 3: invalid index referenced"),
        (_op("replace", "/l/3", value=1), "Unable to access invalid index: 3: invalid index referenced"),
        (_op("replace", "/x/y", value=1), 'replace operation does not apply: doc is missing path: "/x/y": missing value'),
        (_op("replace", "", value=1), "replace operation value must be object or array"),
        (_op("move", "/b", **{"from": "/absent"}), "Unable to remove nonexistent key: absent: missing value"),
        (_op("move", "/a/b/c", **{"from": "/a"}), 'move operation does not apply: doc is missing path: "/a/b/c": missing value'),
        (_op("test", "/a/b", value=2), "testing value /a/b failed: test failed"),
        (_op("test", "/a/b", value=True), "testing value /a/b failed: test failed"),
        (_op("test", "/absent", value=1), "testing value /absent failed: test failed"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"op": "copy", "path": "/x"}, "copy operation failed to decode from: missing value"),
        ({"op": "nope", "path": "/x"}, "Unexpected kind: nope"),
        ({"path": "/x"}, "Unexpected kind: unknown"),
    ],
)  # fmt: skip
def test_what_does_not_apply_is_invalid_and_the_hint_says_why(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid) as refused:
        json_patch(DOCUMENT, [operation])

    assert refused.value.message == "the server rejected our request due to an error in our request"
    assert refused.value.hint == why


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "object into Go value of type []handlers.jsonPatchOp"),
        ("x", "string into Go value of type []handlers.jsonPatchOp"),
        (["x"], "string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "number into Go struct field jsonPatchOp.op of type string"),
        ([{"op": "add", "path": []}], "array into Go struct field jsonPatchOp.path of type string"),
    ],
)
def test_what_is_no_list_of_operations_is_a_bad_request(body: Any, complaint: str) -> None:
    with pytest.raises(BadRequest) as refused:
        json_patch({}, body)

    assert refused.value.message == f"error decoding patch: json: cannot unmarshal {complaint}"


def test_ten_thousand_operations_are_enough() -> None:
    steps = [_op("test", "/s", value="text")] * 10_000
    assert json_patch(DOCUMENT, steps) == DOCUMENT

    with pytest.raises(TooLarge) as refused:
        json_patch(DOCUMENT, [*steps, steps[0]])

    assert refused.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_may_not_grow_without_end() -> None:
    steps = [{"op": "copy", "from": "/big", "path": f"/c{number}"} for number in range(4)]

    with pytest.raises(Invalid) as refused:
        json_patch({"big": "x" * 1024 * 1024}, steps)

    assert "exceeding the limit 3145728" in str(refused.value.hint)


def test_nothing_happens_unless_everything_does() -> None:
    document = {"a": 1, "metadata": {"name": "x"}}

    with pytest.raises(Invalid):
        json_patch(document, [_op("replace", "/a", value=2), _op("test", "/a", value=1)])

    assert document == {"a": 1, "metadata": {"name": "x"}}


def test_the_top_of_the_result_is_new() -> None:
    document = {"a": 1, "metadata": {"name": "x"}}

    result = json_patch(document, [])
    result["metadata"]["name"] = "y"
    result["a"] = 2

    assert document == {"a": 1, "metadata": {"name": "x"}}
