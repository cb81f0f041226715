"""Strategies for any JSON, and any schema that a CRD could have."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "name", "kind", "metadata", "apiVersion", "spec", "status")

names = st.sampled_from(NAMES) | st.text(max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.integers(-3, 12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(("", "a", "ab", "2020-01-01", "10.0.0.1", "a@b", "v1"))
    | st.text(max_size=4)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(names.filter(lambda name: name not in ("kind", "apiVersion")), values, max_size=4)
"""Objects as verbs pass them on: without apiVersion and kind."""

_small = st.integers(-1, 3)
_limit = st.integers(-3, 12) | st.floats(-3, 12) | st.sampled_from((1e30, -1e30, 1e6))
_pattern = st.sampled_from(("^a", "a$", "[a-c]+", "^\\d*$", "(?i)A", "^[^b]{1,2}$", "a|b", "."))
_format = st.sampled_from(
    ("date", "date-time", "ipv4", "ipv6", "email", "uri", "byte", "duration", "int32", "fancy")
)
_listed = st.lists(scalars | st.lists(scalars, max_size=2), min_size=1, max_size=3)
_required = st.lists(st.sampled_from(NAMES), max_size=2)

_NARROWING: dict[str, st.SearchStrategy[Any]] = {
    "minimum": _limit, "maximum": _limit, "exclusiveMinimum": st.booleans(), "exclusiveMaximum": st.booleans(),
    "minLength": _small, "maxLength": _small, "minItems": _small, "maxItems": _small, "minProperties": _small,
    "maxProperties": _small, "pattern": _pattern, "format": _format, "enum": _listed, "required": _required,
    "multipleOf": st.sampled_from((1, 2, 0.5, 0)),
}  # fmt: skip


@st.composite
def narrowings(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Draw the content of a junctor."""
    made = {
        key: draw(_NARROWING[key]) for key in draw(st.sets(st.sampled_from(sorted(_NARROWING)), max_size=2))
    }
    if depth and draw(st.booleans()):
        made["properties"] = draw(
            st.dictionaries(st.sampled_from(NAMES[:3]), narrowings(depth - 1), max_size=2)
        )
    if depth and draw(st.integers(0, 5)) == 0:
        made["items"] = draw(narrowings(depth - 1))
    return made | draw(_junctors(depth))


@st.composite
def _junctors(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if depth and draw(st.integers(0, 4)) == 0:
        junctor = draw(st.sampled_from(("allOf", "anyOf", "oneOf", "not")))
        if junctor == "not":
            made[junctor] = draw(narrowings(depth - 1))
        else:
            made[junctor] = draw(st.lists(narrowings(depth - 1), min_size=1, max_size=2))
    return made


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    """Draw a node of a structural schema."""
    kind = draw(
        st.sampled_from(("object", "object", "array", "string", "integer", "number", "boolean", "", "either"))
    )
    made: dict[str, Any] = {"type": kind}
    if kind == "either":
        made = {"x-kubernetes-int-or-string": True}
    elif not kind or draw(st.integers(0, 7)) == 0:
        made = {"x-kubernetes-preserve-unknown-fields": True} | ({"type": kind} if kind else {})
    if kind == "array":
        made["items"] = draw(schemas(depth - 1)) if depth else {"type": "string"}
        made |= draw(_list_type(made["items"]))
    if kind == "object" and depth:
        if draw(st.booleans()):
            made["properties"] = draw(st.dictionaries(st.sampled_from(NAMES), schemas(depth - 1), max_size=3))
        elif draw(st.booleans()):
            made["additionalProperties"] = draw(st.booleans() | schemas(depth - 1))
        if draw(st.integers(0, 7)) == 0 and "additionalProperties" not in made:
            made["x-kubernetes-embedded-resource"] = True
    if draw(st.integers(0, 4)) == 0:
        made["default"] = draw(values.filter(lambda value: value is not None))
    if draw(st.integers(0, 4)) == 0:
        made["nullable"] = True
    return made | draw(narrowings(0)) | draw(_junctors(2))


@st.composite
def _list_type(draw: st.DrawFn, items: dict[str, Any]) -> dict[str, Any]:
    kind = draw(st.sampled_from(("", "atomic", "set", "map")))
    if not kind or (kind == "map" and items.get("type") != "object"):
        return {}
    keys = {"x-kubernetes-list-map-keys": draw(st.sampled_from((["a"], ["a", "b"])))} if kind == "map" else {}
    return {"x-kubernetes-list-type": kind, **keys}


def _root(node: dict[str, Any]) -> dict[str, Any]:
    kept = {
        k: part for k, part in node.items() if k not in ("additionalProperties", "x-kubernetes-int-or-string")
    }
    return {**kept, "type": "object"}


roots = schemas().map(_root)


def anything() -> st.SearchStrategy[Any]:
    """Return documents that are partly schemas, and otherwise arbitrary."""
    keys = st.sampled_from((
        "type", "properties", "items", "additionalProperties", "allOf", "not", "default", "enum", "required", "nullable",
        "pattern", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations",
        "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "dependencies", "maximum",
    ))  # fmt: skip
    return st.recursive(
        scalars | st.sampled_from(("object", "array", "string", "map", "set")),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys | names, inner, max_size=5),
        max_leaves=15,
    )
