"""Protobuf bodies are decoded to the JSON that Go would encode."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.errors import BadRequest
from lamina.server.codec.protobuf import MAGIC, decode
from lamina.server.codec.protobuf_forms import FORMS, RAW
from lamina.server.kinds.builtin.tables import table
from tests.unit.server.wire import encode, envelope, kinds, message_of, objects, sized, varint

CONFIG_MAP = ("v1", "ConfigMap")


def sent(api_version: str, kind: str, obj: dict[str, Any]) -> bytes:
    return envelope(api_version, kind, encode(message_of(api_version, kind), obj))


def read(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    _, _, obj = decode(envelope(api_version, kind, raw))
    return obj


@pytest.mark.parametrize(("api_version", "kind"), kinds())
def test_every_kind_in_the_table_can_be_read(api_version: str, kind: str) -> None:
    said = decode(sent(api_version, kind, {}))

    assert said[:2] == (api_version, kind)


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None, max_examples=200
)
@given(data=st.data())
def test_whatever_go_writes_is_read_back(data: st.DataObject) -> None:
    api_version, kind = data.draw(st.sampled_from(kinds()))
    obj = data.draw(objects(message_of(api_version, kind)))

    assert decode(sent(api_version, kind, obj)) == (
        api_version,
        kind,
        {"apiVersion": api_version, "kind": kind, **obj},
    )


@settings(deadline=None)
@given(noise=st.binary(max_size=200), kind=st.sampled_from([*kinds(), ("v1", "DeleteOptions"), ("", "")]))
def test_noise_gives_an_object_or_a_bad_request(noise: bytes, kind: tuple[str, str]) -> None:
    for body in (noise, MAGIC + noise, envelope(*kind, noise)):
        try:
            _, _, obj = decode(body)
        except BadRequest:
            continue
        assert orjson.loads(orjson.dumps(obj)) == obj


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(data=st.data())
def test_a_damaged_message_raises_nothing_but_a_bad_request(data: st.DataObject) -> None:
    api_version, kind = data.draw(st.sampled_from(kinds()))
    body = bytearray(sent(api_version, kind, data.draw(objects(message_of(api_version, kind)))))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(4, len(body)))]

    try:
        _, _, obj = decode(bytes(body))
    except BadRequest:
        return
    orjson.dumps(obj)


def test_a_config_map_as_kubectl_sends_it() -> None:
    raw = (
        sized(1, sized(1, b"p1") + sized(2, b"") + sized(3, b"acc") + varint(7 << 3) + b"\0" + sized(8, b""))
        + sized(2, sized(1, b"a") + sized(2, b"b"))
        + sized(3, sized(1, b"bin") + sized(2, b"\xff\0"))
        + varint(4 << 3) + b"\0"
    )  # fmt: skip

    assert read(*CONFIG_MAP, raw) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "p1", "namespace": "acc"},
        "data": {"a": "b"},
        "binaryData": {"bin": "/wA="},
        "immutable": False,
    }


@pytest.mark.parametrize(
    ("kind", "obj", "shown"),
    [
        # A pointer to zero was set; a zero without a pointer was not.
        (("v1", "ConfigMap"), {"data": {}, "immutable": False}, {"metadata": {}, "immutable": False}),
        (("v1", "ConfigMap"), {"metadata": {"name": "", "generation": 0}}, {"metadata": {}}),
        (("v1", "DeleteOptions"), {"gracePeriodSeconds": 0, "dryRun": []}, {"gracePeriodSeconds": 0}),
        (("apps/v1", "DeleteOptions"), {"preconditions": {}}, {"preconditions": {}}),
        # JSON always has structs and required fields.
        (("rbac.authorization.k8s.io/v1", "Role"), {}, {"metadata": {}, "rules": None}),
        (("v1", "Binding"), {}, {"metadata": {}, "target": {}}),
        (("autoscaling/v1", "Scale"), {}, {"metadata": {}, "spec": {}, "status": {"replicas": 0}}),
        # Inlined fields belong to the parent.
        (
            ("v1", "PodTemplate"),
            {"template": {"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}},
            {
                "metadata": {},
                "template": {
                    "metadata": {},
                    "spec": {"containers": None, "volumes": [{"name": "v", "emptyDir": {}}]},
                },
            },
        ),
        # An absent time is null, and 1970 is a time.
        (
            ("coordination.k8s.io/v1", "Lease"),
            {"spec": {"renewTime": None, "acquireTime": "1970-01-01T00:00:00.000000Z"}},
            {"metadata": {}, "spec": {"renewTime": None, "acquireTime": "1970-01-01T00:00:00.000000Z"}},
        ),
        (("v1", "Namespace"), {"metadata": {"creationTimestamp": None}}, {"metadata": {}, "spec": {}, "status": {}}),
    ],
)  # fmt: skip
def test_what_was_meant_is_kept_and_what_was_not_is_dropped(
    kind: tuple[str, str], obj: dict[str, Any], shown: dict[str, Any]
) -> None:
    api_version, name, said = decode(sent(*kind, obj))

    assert said == {"apiVersion": api_version, "kind": name, **shown}


def test_a_kind_that_the_envelope_does_not_name_is_the_expected_one() -> None:
    body = envelope("", "", encode(message_of(*CONFIG_MAP), {"metadata": {"name": "x"}}))

    assert decode(body, CONFIG_MAP)[:2] == CONFIG_MAP


def test_a_message_in_two_pieces_is_their_union() -> None:
    raw = sized(1, sized(1, b"first")) + sized(1, sized(3, b"acc")) + sized(1, sized(1, b"last"))

    assert read(*CONFIG_MAP, raw)["metadata"] == {"name": "last", "namespace": "acc"}


def test_packed_numbers_are_read() -> None:
    exit_codes = sized(3, varint(1) + varint(300) + varint(-1))
    policy = sized(1, sized(2, exit_codes))

    said = read("batch/v1", "Job", sized(2, sized(11, policy)))

    assert said["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [1, 300, -1]


def test_unknown_fields_are_skipped() -> None:
    unknown = (
        varint(99 << 3)
        + varint(5)
        + sized(98, b"xyz")
        + varint(97 << 3 | 1)
        + bytes(8)
        + varint(96 << 3 | 5)
        + bytes(4)
    )

    assert read(*CONFIG_MAP, unknown + sized(1, sized(1, b"x")))["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
        (
            b"junk",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be "
            "a protobuf message, expected prefix [107 56 115 0] (6a756e6b)",
        ),
        (MAGIC, "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
        (
            envelope("v1", "Nope", b""),
            'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" '
            'in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            envelope("apps/v1", "Deployment", b"\x0a\x05\x0a"),
            'Deployment in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
        (
            envelope(*CONFIG_MAP, b"\x0a\x05\x0a"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_in_the_words_of_kubernetes(body: bytes, says: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode(body, CONFIG_MAP)

    assert refused.value.message == says


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (envelope("v9", "Pod", b""), 'no kind "Pod" is registered for version "v9"'),
        (envelope("v1", "PodSpec", b""), 'no kind "PodSpec" is registered for version "v1"'),
        (envelope(*CONFIG_MAP, b"\x0a"), "unexpected EOF"),
        (envelope(*CONFIG_MAP, b"\x08\x01"), "wrong wireType = 0 for field 1"),
        (envelope(*CONFIG_MAP, b"\xfb\x01"), "illegal wireType 3"),
        (envelope(*CONFIG_MAP, b"\x00\x01"), "for field 0"),
        (envelope(*CONFIG_MAP, b"\x20" + b"\xff" * 10), "integer overflow"),
        (envelope(*CONFIG_MAP, sized(1, sized(1, b"\xff"))), "invalid UTF-8"),
        (envelope(*CONFIG_MAP, sized(1, sized(8, varint(1 << 3) + varint(1 << 60)))), "year outside of range"),
        (envelope("apps/v1", "ControllerRevision", sized(2, sized(1, b"{"))), "unexpected end of data"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode(body)

    assert says in refused.value.message


def test_a_bottomless_schema_is_refused() -> None:
    schema = b""
    for _ in range(5000):
        schema = sized(28, schema)
    raw = sized(2, sized(7, sized(4, sized(1, schema))))

    with pytest.raises(BadRequest, match="more than 100 messages inside each other"):
        read("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)


def test_every_form_of_its_own_is_one_the_table_mentions() -> None:
    mentioned = {name.rpartition(".")[2] for name in table("messages")["messages"]}

    assert mentioned >= set(FORMS)
    assert mentioned >= RAW
