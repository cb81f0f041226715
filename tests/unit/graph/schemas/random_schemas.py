"""Random schemas, specs for them, and what the API server does with both."""

import copy
from typing import Any

from hypothesis import strategies as st

from lamina.errors import Cause
from lamina.graph.language.simple_schema import build_schema
from lamina.objects.types import Made, Obj
from lamina.server.kinds.custom.cel_rules.rules import Rules
from lamina.server.kinds.custom.crd_validation import validate_create
from lamina.server.kinds.custom.default import defaulter, null_pruner
from lamina.server.kinds.custom.listtypes import distinct
from lamina.server.kinds.custom.prune import value_pruner
from lamina.server.kinds.custom.validator import Validator

# The markers of one type fit each other and every default, so that each schema can be served.
_TEXT = (
    "minLength=1",
    "maxLength=3",
    "maxLength=2",
    'pattern="^a"',
    'pattern="b$"',
    'enum="ab,abc"',
    'enum="ab,b"',
)
_TEXT_RULES = ("validation=\"self != 'abc'\"", 'validation="size(self) > 1"', "immutable=true")
_NUMBER = ("minimum=1", "minimum=3", "maximum=3", "maximum=4.5", 'enum="3,4"', 'validation="self < 5"')
_LIST = ("minItems=1", "maxItems=2", "maxItems=1", "uniqueItems=true", "validation=\"!('b' in self)\"")


def _field(kind: str, markers: tuple[str, ...], default: str) -> st.SearchStrategy[str]:
    options = (*markers, f"default={default}", "required=true")
    chosen = st.lists(st.sampled_from(options), max_size=3, unique_by=lambda one: one.partition("=")[0])
    return chosen.map(lambda some: f"{kind} | {' '.join(some)}" if some else kind)


def _structures(*, deep: bool) -> st.SearchStrategy[Made]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "text": _field("string", (*_TEXT, *_TEXT_RULES), "ab"),
        "number": _field("integer", _NUMBER, "3"),
        "part": _field("float", ("minimum=0.5", "maximum=3"), "1.5"),
        "flag": _field("boolean", (), "true"),
        "a.b": _field("string", _TEXT, "ab"),
    }
    if deep:
        inner = _structures(deep=False)
        fields |= {
            "list": _field("[]string", _LIST, '["ab"]'),
            "map": _field("map[string]integer", (), '{"k":3}'),
            "nested": st.one_of(inner, inner, st.just("object")),
            "any": st.just("object"),
            "alias": st.sampled_from(["Alias", "[]Alias", "map[string]Alias"]),
            "items": st.sampled_from(["[]Item", "[]Item | listType=map listMapKey=text"]),
        }
        # Of these, a name has one type, and otherwise a schema is a type conflict with another.
        del fields["alias"]
        fields["aliases"] = st.sampled_from(["[]Alias", "[]Alias | maxItems=1"])
    return st.fixed_dictionaries({}, optional=fields)


_ITEMS = st.fixed_dictionaries(
    {"text": st.sampled_from(["string | required=true", "string | default=ab"])},
    optional={"number": _field("integer", _NUMBER, "3")},
)


@st.composite
def definitions(draw: st.DrawFn) -> Made:
    """Return `spec` and `types` of a definition's schema."""
    types = {"Alias": draw(_field("string", _TEXT, "ab")), "Item": draw(_ITEMS)}
    return {"spec": draw(_structures(deep=True)), "types": types}


schemas = definitions().map(build_schema)

_SCALARS = st.one_of(
    st.sampled_from(["", "a", "ab", "abc", "b", "zzzz", "é", "🙂🙂🙂"]),
    st.integers(-1, 6),
    st.sampled_from([0.5, 1.5, 3.0, 4.5, 1e300, 2**63, True, False, None]),
)
_TEXTS = st.sampled_from(["ab", "abc", "b", "a"])
_LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "text": _TEXTS,
    "a.b": _TEXTS,
    "number": st.integers(2, 5),
    "part": st.sampled_from([0.5, 1, 2.5]),
    "flag": st.booleans(),
    "list": st.lists(_TEXTS, max_size=3),
    "aliases": st.lists(_TEXTS, max_size=2),
    "map": st.dictionaries(st.sampled_from(["k", "x.y"]), st.integers(2, 4), max_size=2),
    "any": st.dictionaries(st.sampled_from(["q", "text"]), _SCALARS, max_size=2),
}
_SIMPLE = {name: _LIKELY[name] for name in ("text", "number", "part", "flag", "a.b")}
_INNER = st.fixed_dictionaries({}, optional={**_SIMPLE, "q": _SCALARS})
_LIKELY_SPECS = st.fixed_dictionaries(
    {},
    optional={
        **_LIKELY,
        "q": _SCALARS,
        "nested": _INNER,
        "items": st.lists(
            st.fixed_dictionaries({}, optional={"text": _TEXTS, "number": st.integers(2, 5)}), max_size=2
        ),
    },
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*_LIKELY, "nested", "items", "q"]), inner, max_size=3),
    ),
    max_leaves=8,
)
_ODD_SPECS = st.dictionaries(st.sampled_from([*_LIKELY, "nested", "items", "q"]), _JSON, max_size=4)

specs = st.one_of(_LIKELY_SPECS, _LIKELY_SPECS, _ODD_SPECS)
"""Specs that often fit a random schema, and some that do not."""


def served(spec: Obj, schema: Obj) -> Made:
    """Return a spec as the API server stores it."""
    made: Made = copy.deepcopy(dict(spec))
    value_pruner(schema)(made, "", [])
    for step in (null_pruner(schema), defaulter(schema)):
        if step is not None:
            step(made)
    return made


def is_accepted(spec: Obj, schema: Obj) -> bool:
    """Say whether the API server accepts a spec that it has stored with that schema."""
    if Validator(schema).causes(spec, "spec"):
        return False
    lists = distinct(schema)
    if lists is not None and list(lists.causes(spec)):
        return False
    return not Rules(schema, resource=False).validate(spec).causes


def not_served(crd: Obj) -> list[Cause]:
    """Return why the API server does not accept a CRD."""
    conversion = {"conversion": {"strategy": "None"}}
    versions = [version["name"] for version in crd["spec"]["versions"]]
    status = {"storedVersions": versions}
    return validate_create({**crd, "spec": {**crd["spec"], **conversion}, "status": status})


def without_defaults(schema: Any) -> Any:
    """Return a schema without the defaults of its fields; what had one is not required any more."""
    if isinstance(schema, list):
        return [without_defaults(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without_defaults(one) for key, one in schema.items() if key != "default"}
