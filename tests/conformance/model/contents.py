"""
The objects of programs: five kinds, each with all of its features.

ConfigMap is plain, PodTemplate has all list types and defaults, Ingress has a status and a
generation, Widget is custom with one of every feature, Beacon is custom and cluster-scoped.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.conformance.transcript.kinds import GROUP

OWN = "<own>"
"""Placeholder for a name that is unique to the program: part of the names of cluster-scoped objects."""


class KindOf(NamedTuple):
    """Where a kind is served, and its subresources."""

    path: str
    api_version: str
    kind: str
    namespaced: bool = True
    below: tuple[str, ...] = ()
    custom: bool = False


KINDS = {
    "beacons": KindOf(f"/apis/{GROUP}/v1", f"{GROUP}/v1", "Beacon", False, ("status",), True),
    "configmaps": KindOf("/api/v1", "v1", "ConfigMap"),
    "ingresses": KindOf("/apis/networking.k8s.io/v1", "networking.k8s.io/v1", "Ingress", below=("status",)),
    "podtemplates": KindOf("/api/v1", "v1", "PodTemplate"),
    "widgets": KindOf(f"/apis/{GROUP}/v1", f"{GROUP}/v1", "Widget", True, ("status", "scale"), True),
}
TEXTS = st.sampled_from(["", "red", "blue"])


def some(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with any of some fields."""
    return st.fixed_dictionaries({}, optional=parts)


def _maps(values: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["k", "l", "m"]), values, min_size=least, max_size=2)


def _keyed(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    entry = st.fixed_dictionaries({"name": st.sampled_from(["p", "q", "r"])}, optional=parts)
    return st.lists(entry, max_size=3, unique_by=lambda one: str(one["name"]))


# Never empty: how long an empty map in metadata persists depends on the next writer.
METADATA = some(
    labels=_maps(st.sampled_from(["1", "2", "1", "2", "1", "2", "-"]), least=1),
    annotations=_maps(TEXTS, least=1),
    finalizers=st.lists(
        st.sampled_from(["example.com/x", "example.com/y"]), unique=True, min_size=1, max_size=2
    ),
)
_CONFIG_MAP = some(data=_maps(TEXTS), binaryData=st.just({"b": "dg=="}), immutable=st.just(False))
_SPEC = some(
    size=st.sampled_from([1, 2, 3, 1, 2, 3, 1, 2, 3, 11]),
    color=st.sampled_from(["red", "blue", "red", "blue", "red", "blue", "pink"]),
    replicas=st.integers(0, 2),
    note=st.sampled_from(["plain", "other", "plain", "other", "plain", "Capital"]),
    ratio=st.sampled_from([1, 1.5]),
    flag=st.booleans(),
    port=st.sampled_from([80, "http"]),
    ports=_keyed(port=st.integers(1, 2)),
    tags=st.lists(st.sampled_from(["t", "u", "v"]), unique=True, max_size=2),
    whole=st.lists(st.sampled_from(["t", "u"]), max_size=2),
    labels=_maps(TEXTS),
    single=some(a=TEXTS, b=TEXTS),
    deep=some(level=TEXTS, other=TEXTS),
    opaque=_maps(st.sampled_from([1, "x", [1], {"y": {"z": 1}}])),
)
_CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Ready", "Late"]), "status": st.sampled_from(["True", "False"])}
    ),
    max_size=2,
    unique_by=lambda one: one["type"],
)
_CONTAINERS = _keyed(
    image=st.sampled_from(["i:1", "i:2", "i"]),
    command=st.lists(TEXTS, max_size=2),
    env=_keyed(value=TEXTS),
    ports=st.lists(
        st.fixed_dictionaries(
            {"containerPort": st.sampled_from([80, 81])}, optional={"protocol": st.just("TCP")}
        ),
        max_size=2,
        unique_by=lambda one: int(one["containerPort"]),
    ),
)
_POD_TEMPLATE = some(
    template=some(
        metadata=some(labels=_maps(st.just("1"))),
        spec=some(
            containers=_CONTAINERS,
            nodeSelector=_maps(TEXTS),
            restartPolicy=st.sampled_from(["Always", "Never"]),
            volumes=_keyed(emptyDir=st.just({})),
            terminationGracePeriodSeconds=st.integers(0, 2),
        ),
    )
)
_BACKEND = st.sampled_from(
    [{"service": {"name": "s", "port": {"number": 80}}}, {"service": {"name": "t", "port": {"name": "h"}}}]
)
_RULES = st.lists(st.fixed_dictionaries({"host": st.sampled_from(["a.example", "b.example"])}), max_size=2)
_INGRESS = some(
    spec=some(
        defaultBackend=_BACKEND,
        ingressClassName=st.sampled_from(["x", "y"]),
        rules=_RULES,
        tls=st.lists(some(hosts=st.just(["a.example"]), secretName=TEXTS), max_size=1),
    ),
    status=some(loadBalancer=st.sampled_from([{}, {"ingress": [{"ip": "192.0.2.1"}]}])),
)
CONTENTS = {
    "beacons": some(
        spec=some(height=st.integers(0, 3), lamps=_keyed(watts=st.integers(1, 2))), status=some(phase=TEXTS)
    ),
    "configmaps": _CONFIG_MAP,
    "ingresses": _INGRESS,
    "podtemplates": _POD_TEMPLATE,
    "widgets": some(
        spec=_SPEC,
        status=some(phase=TEXTS, replicas=st.integers(0, 2), conditions=_CONDITIONS),
    ),
}
# Fields with which most writes are valid.
VALID_FIELDS: dict[str, dict[str, Any]] = {
    "beacons": {},
    "configmaps": {},
    "ingresses": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "podtemplates": {"template": {"spec": {"containers": [{"name": "p", "image": "i:1"}]}}},
    "widgets": {"spec": {"size": 1}},
}
# The pointers and values of JSON patches.
POINTERS: dict[str, dict[str, Any]] = {
    "beacons": {"/spec/height": 4, "/spec/lamps/0": {"name": "z"}, "/metadata/labels": {"k": "3"}},
    "configmaps": {
        "/data": {"k": "v"},
        "/data/k": "v",
        "/metadata/labels": {"k": "3"},
        "/metadata/labels/k": "3",
    },
    "ingresses": {"/spec/rules/-": {"host": "c.example"}, "/spec/tls": [], "/spec/ingressClassName": "z"},
    "podtemplates": {
        "/template/spec/containers/0/image": "v",
        "/template/spec/containers/-": {"name": "s", "image": "i:3"},
        "/template/spec/nodeSelector": {"k": "v"},
        "/metadata/annotations": {"k": "v"},
    },
    "widgets": {
        "/spec/size": 4,
        "/spec/tags": ["w"],
        "/spec/tags/0": "v",
        "/spec/labels/k": "v",
        "/metadata/finalizers": ["example.com/z"],
    },
}


def name_of(kind: str, name: str) -> str:
    """Return the name of an object in a program."""
    return name if KINDS[kind].namespaced else f"{OWN}-{name}"


def _over(base: Any, given: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(given, dict):
        return given
    return {**base, **{key: _over(base.get(key), value) for key, value in given.items()}}


@st.composite
def bodies(draw: st.DrawFn, kind: str, *, sound: bool) -> dict[str, Any]:
    """Return an object of a kind without a name, mostly valid if it is `sound`."""
    given = draw(CONTENTS[kind])
    metadata = draw(METADATA)
    body = _over(VALID_FIELDS[kind], given) if sound else given
    return {**body, "metadata": metadata} if metadata else body


@st.composite
def with_holes(draw: st.DrawFn, value: Any) -> Any:
    """Return a patch with some of its values replaced by null."""
    if not isinstance(value, dict):
        return value
    return {
        key: None if key != "metadata" and draw(st.integers(0, 7)) == 0 else draw(with_holes(below))
        for key, below in value.items()
    }
