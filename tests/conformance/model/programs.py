"""
Random programs: sequences of requests with the same meaning on any server.

A request names objects, not versions or uids: `VERSION` and `UID` stand for the newest
ones that were observed while the program runs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.bed.wire import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC
from tests.conformance.model.contents import (
    KINDS,
    OWN,
    POINTERS,
    VALID_FIELDS,
    bodies,
    name_of,
    some,
    with_holes,
)

VERSION = "<version>"
UID = "<uid>"
BEGAN = "<began>"
"""The version of the collection before the program began."""
LAST = "z"
"""The name of the object that is created last, so that a watch knows when it is complete."""

NAMES = st.sampled_from(["a", "a", "a", "b"])
MANAGERS = st.sampled_from(["one", "two", "three"])
SELECTORS = st.sampled_from(["k", "k%3D1", "!k", "k%20in%20(1,2)", "k!%3D1", "k%3D%3D2,!l"])
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """One request; `kind` is a plural, and an empty name means the collection. WATCH reads until LAST is created."""

    method: str
    kind: str
    name: str = ""
    below: str = ""
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content: str = JSON
    accept: str = JSON


OPTIONS = st.fixed_dictionaries(
    {"fieldManager": MANAGERS},
    optional={
        "dryRun": st.just("All"),
        "fieldValidation": st.sampled_from(["Strict", "Warn", "Ignore"]),
    },
)


def _named(kind: str, name: str, body: dict[str, Any], **metadata: str) -> dict[str, Any]:
    typed = {"apiVersion": KINDS[kind].api_version, "kind": KINDS[kind].kind}
    return {
        **typed,
        **body,
        "metadata": {**body.get("metadata", {}), "name": name_of(kind, name), **metadata},
    }


@st.composite
def sayings(draw: st.DrawFn, kind: str) -> Saying:
    """Return any request about one kind."""
    fits = [one for one in sorted(_VERBS) if one not in _PARTICULAR or _PARTICULAR[one](kind)]
    return draw(_VERBS[draw(st.sampled_from(fits))](kind, draw(NAMES), draw(OPTIONS)))


@st.composite
def _create(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    body = _named(kind, name, draw(bodies(kind, sound=True)))
    return Saying(method="POST", kind=kind, query=query, body=body)


@st.composite
def _generate(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    # Only as a dry run: the position of a generated name in a list is random.
    body = _named(kind, name, draw(bodies(kind, sound=True)), generateName="made-")
    if draw(st.integers(0, 3)):
        del body["metadata"]["name"]
    return Saying(method="POST", kind=kind, query={**query, "dryRun": "All"}, body=body)


@st.composite
def _update(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    version = draw(st.sampled_from([VERSION, VERSION, VERSION, "1", "0", ""]))
    body = _named(kind, name, draw(bodies(kind, sound=True)), resourceVersion=version)
    if draw(st.integers(0, 7)) == 0:
        body["metadata"]["uid"] = UID
    return Saying(method="PUT", kind=kind, name=name, below=draw(_belows(kind)), query=query, body=body)


def _belows(kind: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", "status"] if "status" in KINDS[kind].below else [""])


@st.composite
def _merge(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    body = draw(bodies(kind, sound=False).flatmap(with_holes))
    if draw(st.integers(0, 5)) == 0:
        version = draw(st.sampled_from([VERSION, "1"]))
        body = {**body, "metadata": {**(body.get("metadata") or {}), "resourceVersion": version}}
    return Saying(
        method="PATCH",
        kind=kind,
        name=name,
        below=draw(_belows(kind)),
        query=query,
        body=body,
        content=MERGE,
    )


@st.composite
def _strategic(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    body = draw(bodies(kind, sound=False).flatmap(with_holes))
    below = draw(_belows(kind))
    return Saying(
        method="PATCH", kind=kind, name=name, below=below, query=query, body=body, content=STRATEGIC
    )


@st.composite
def _json_patch(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    operations = []
    for pointer in draw(st.lists(st.sampled_from(sorted(POINTERS[kind])), min_size=1, max_size=2)):
        verb = draw(st.sampled_from(["add", "replace", "remove", "test"]))
        operation = {"op": verb, "path": pointer}
        if verb != "remove":
            operation["value"] = POINTERS[kind][pointer]
        operations.append(operation)
    return Saying(method="PATCH", kind=kind, name=name, query=query, body=operations, content=JSON_PATCH)


@st.composite
def _apply(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    body = draw(bodies(kind, sound=draw(st.booleans())))
    if draw(st.booleans()):
        query = {**query, "force": "true"}
    return Saying(
        method="PATCH",
        kind=kind,
        name=name,
        below=draw(_belows(kind)),
        query=query,
        body=_named(kind, name, body),
        content=APPLY,
    )


@st.composite
def _scale(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    body: dict[str, Any] = {"spec": {"replicas": draw(st.integers(-1, 3))}}
    content = draw(st.sampled_from([MERGE, JSON]))
    query = {key: value for key, value in query.items() if key != "fieldValidation"}
    method = "PATCH"
    if content == JSON:
        body, method = {**SCALE, **body, "metadata": {"name": name}}, "PUT"
    return Saying(method=method, kind=kind, name=name, below="scale", query=query, body=body, content=content)


_DELETIONS = some(
    propagationPolicy=st.just("Background"),
    preconditions=st.sampled_from(
        [{"resourceVersion": VERSION}, {"resourceVersion": "1"}, {"uid": UID}, {"uid": "another"}]
    ),
    dryRun=st.just(["All"]),
    gracePeriodSeconds=st.sampled_from([0, 5]),
)


@st.composite
def _delete(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    return Saying(method="DELETE", kind=kind, name=name, body=draw(_DELETIONS) or None)


@st.composite
def _delete_all(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    asked = _only(kind, name)
    if draw(st.booleans()):
        asked["labelSelector"] = draw(SELECTORS)
    if draw(st.booleans()):
        asked["dryRun"] = "All"
    return Saying(method="DELETE", kind=kind, query=asked)


def _only(kind: str, name: str) -> dict[str, str]:
    """Return a selection without the objects of others."""
    if not KINDS[kind].namespaced:
        return {"fieldSelector": f"metadata.name%3D{OWN}-{name}"}
    return {"fieldSelector": "metadata.name!%3Dkube-root-ca.crt"}


@st.composite
def _read(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    accept = draw(st.sampled_from([JSON, TABLE, PARTIAL]))
    below = draw(st.sampled_from(["", "", *KINDS[kind].below]))
    return Saying(method="GET", kind=kind, name=name, below=below, accept=JSON if below else accept)


@st.composite
def _read_all(draw: st.DrawFn, kind: str, name: str, query: dict[str, str]) -> Saying:
    asked = _only(kind, name) | draw(some(labelSelector=SELECTORS, limit=st.sampled_from(["1", "5"])))
    asked |= draw(
        st.sampled_from(
            [
                {},
                {},
                {"resourceVersion": "0"},
                {"resourceVersion": VERSION, "resourceVersionMatch": "NotOlderThan"},
                {"resourceVersion": BEGAN, "resourceVersionMatch": "Exact"},
            ]
        )
    )
    return Saying(method="GET", kind=kind, query=asked, accept=draw(st.sampled_from([JSON, TABLE])))


_Made = Callable[[str, str, dict[str, str]], st.SearchStrategy[Saying]]
_VERBS: dict[str, _Made] = {
    "apply": _apply,
    "create": _create,
    "delete": _delete,
    "delete all": _delete_all,
    "generate": _generate,
    "json patch": _json_patch,
    "merge": _merge,
    "read": _read,
    "read all": _read_all,
    "scale": _scale,
    "strategic": _strategic,
    "update": _update,
}
_PARTICULAR: dict[str, Callable[[str], bool]] = {
    "scale": lambda kind: "scale" in KINDS[kind].below,
    "strategic": lambda kind: not KINDS[kind].custom,
}


def _ending(draw: st.DrawFn, kind: str) -> list[Saying]:
    """Return the object that is created last, and a watch up to it."""
    if not KINDS[kind].namespaced:
        return []
    query = _only(kind, LAST) | {"resourceVersion": BEGAN}
    if chosen := draw(st.sampled_from(["", "", "k", "k%3D1", "k%20in%20(1,2)"])):
        query["labelSelector"] = chosen
    body = _named(kind, LAST, {**VALID_FIELDS[kind], "metadata": {"labels": {"k": "1"}}})
    return [Saying(method="POST", kind=kind, body=body), Saying(method="WATCH", kind=kind, query=query)]


@st.composite
def programs(draw: st.DrawFn) -> list[Saying]:
    """Return a program about one kind: it creates objects, and ends with a watch of all events."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    begin = [
        draw(draw(st.sampled_from([_create, _apply]))(kind, name, {"fieldManager": draw(MANAGERS)}))
        for name in "ab"
    ]
    return begin + draw(st.lists(sayings(kind), min_size=3, max_size=16)) + _ending(draw, kind)
