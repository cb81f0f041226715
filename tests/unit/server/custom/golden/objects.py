"""
Objects good and bad, and the definitions they are written under.

A case is one write: a creation, or a change of an object that was created
before, perhaps under an older form of its definition. The real server's answers
are in golden/objects.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.unit.server.custom.golden.definitions import GROUP, OBJECT, Made

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_ANY_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One write to an object of a definition.

    Without `before` it is a creation. With it, `before` is created first, the
    definition changes to `then` if that is given, and `body` replaces it.
    """

    name: str
    definition: str
    body: Made
    before: Made | None = None
    then: str = ""
    subresource: str = ""
    version: str = "v1"


def _crd(plural: str, *versions: tuple[str, Any, Made]) -> Made:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "kind": plural.capitalize(),
                "singular": plural,
                "listKind": f"{plural.capitalize()}List",
            },
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": index == 0,
                    "schema": {"openAPIV3Schema": schema},
                    **more,
                }
                for index, (name, schema, more) in enumerate(versions)
            ],
        },
    }


def _spec(properties: Made, **beside: Any) -> Made:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **beside}}}


FIELDS: dict[str, Made] = {
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "text": _TEXT,
    "whole": _WHOLE,
    "number": {"type": "number"},
    "yes": {"type": "boolean"},
    "list": {"type": "array", "items": _TEXT},
    "lists": {"type": "array", "items": {"type": "array", "items": _WHOLE}},
    "map": {"type": "object", "additionalProperties": _WHOLE},
    "free": {"type": "object", "additionalProperties": True},
    "none": {"type": "object", "additionalProperties": False},
    "struct": {"type": "object", "required": ["a"], "properties": {"a": _TEXT, "b": _WHOLE}},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": _TEXT}},
    "intOrString": {"x-kubernetes-int-or-string": True},
    "spelled": {"x-kubernetes-int-or-string": True, "anyOf": _ANY_INT_OR_STRING},
    "alsoSpelled": {
        "x-kubernetes-int-or-string": True,
        "allOf": [{"anyOf": _ANY_INT_OR_STRING}, {"pattern": "^a"}],
    },
    "nullableText": {"type": "string", "nullable": True},
    "nullableStruct": {"type": "object", "nullable": True, "required": ["a"], "properties": {"a": _TEXT}},
    "nullableItems": {"type": "array", "items": {"type": "string", "nullable": True}},
    "nullableValues": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    "range": {"type": "integer", "minimum": 1, "maximum": 10},
    "openRange": {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 10,
        "exclusiveMaximum": True,
    },
    "brokenRange": {"type": "number", "minimum": 0.5, "maximum": 10.5},
    "brokenOpenRange": {
        "type": "integer",
        "minimum": -1.5,
        "exclusiveMinimum": True,
        "maximum": 1.5,
        "exclusiveMaximum": True,
    },
    "hugeRange": {"type": "number", "minimum": -1e30, "maximum": 1e30},
    "million": {"type": "number", "maximum": 1000000},
    "fives": {"type": "integer", "multipleOf": 5},
    "halves": {"type": "number", "multipleOf": 0.5},
    "length": {"type": "string", "minLength": 2, "maxLength": 4},
    "oneLong": {"type": "string", "maxLength": 1},
    "pattern": {"type": "string", "pattern": "^[a-z]+$"},
    "digits": {"type": "string", "pattern": "^\\d+$"},
    "part": {"type": "string", "pattern": "b"},
    "lengthAndPattern": {"type": "string", "maxLength": 2, "pattern": "^x"},
    "enum": {"type": "string", "enum": ["red", "green", 'a"b']},
    "numbers": {"type": "integer", "enum": [1, 2, 5]},
    "fractions": {"type": "number", "enum": [1.5, 2]},
    "mixed": {"x-kubernetes-preserve-unknown-fields": True, "enum": ["a", 1, True, {"a": 1}, ["a"], None]},
    "nullableEnum": {"type": "string", "nullable": True, "enum": ["a"]},
    "items": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "maximum": 5}},
    "oneItem": {"type": "array", "maxItems": 1, "items": _TEXT},
    "properties": {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 2,
        "additionalProperties": {"type": "string", "maxLength": 1},
    },
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-int-or-string": True}},
    "setOfStructs": {
        "type": "array",
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": _TEXT, "b": _WHOLE},
        },
    },
    "byName": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "required": ["a"], "properties": {"a": _TEXT, "b": _WHOLE}},
    },
    "oneOf": {
        "type": "object",
        "properties": {"a": _TEXT, "b": _WHOLE},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "anyOf": {
        "type": "object",
        "properties": {"a": _TEXT, "b": _WHOLE},
        "anyOf": [
            {"required": ["a"], "properties": {"a": {"enum": ["a"]}}},
            {"properties": {"b": {"minimum": 3}}, "required": ["b"]},
        ],
    },
    "allOf": {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^a"}]},
    "not": {"type": "string", "not": {"pattern": "b"}},
    "nothing": {"type": "integer", "not": {}},
    "formatted": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "untypedFormat": {"x-kubernetes-preserve-unknown-fields": True, "format": "date"},
    "wholeFormat": {"type": "integer", "format": "int32"},
    "date": {"type": "string", "format": "date"},
    "embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}

DEFAULTED: dict[str, Made] = {
    "byBoth": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": _TEXT, "b": {"type": "integer", "default": 1}},
        },
    },
    "defaulted": {"type": "string", "default": "d"},
    "defaultedStruct": {
        "type": "object",
        "default": {},
        "properties": {"a": {"type": "string", "default": "x"}, "b": _WHOLE},
    },
    "inner": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": _WHOLE}},
    "defaultedNullable": {"type": "string", "nullable": True, "default": "d"},
    "defaultedItems": {"type": "array", "items": {"type": "string", "default": "i"}},
    "defaultedValues": {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer", "default": 7}}},
    },
}

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 5, 10, 11, 97, 1.0, 1.5, -0.5, 10.5, 1e6, 1234567, 2**53 + 1, 2**63, 1e30, "", "a", "ab", "abc", "red", "5", "b\n", "aé\x01<&>", "12345", "2020-02-29",
    "10.0.0.1", [], ["a"], ["a", "a", "a"], [1, 2, 3], [None], [1, 1.0, "1", True], [[1], ["x"]], [{"a": "a"}, {"a": "a", "b": 1}, {"b": 2}], [{}, {}, None], {}, {"a": "a"}, {"a": 1, "b": "x"},
    {"a": None, "b": 4}, {"a": "abc", "b": 1, "c": {"d": [1, {"e": 2}]}}, {"b": 2},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}, "bogus": 1}, "spec": {"x": 1}},
    {"apiVersion": "a/b/c", "kind": "P od", "metadata": {"name": "x/y", "labels": {"a b": "c d"}, "finalizers": ["bare"]}},
    {"apiVersion": 5, "kind": "", "metadata": None}, {"kind": "Pod", "metadata": {"labels": 5}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": "x"},
]  # fmt: skip

FORMATS: dict[str, list[str]] = {
    "date-time": [
        "2020-02-29T23:59:59Z",
        "2021-02-29T00:00:00Z",
        "2020-01-01t00:00:00.5+01:00",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:00:60Z",
        "2020-01-01 00:00:00Z",
        "",
    ],
    "duration": [
        "1h",
        "1h30m",
        "2 days",
        "5",
        "0",
        "",
        "1.5s",
        "-3m",
        "1 fortnight",
        "9999999999999999999h",
        "5 weeks later",
    ],
    "email": [
        "a@b.c",
        "a",
        "Joe <a@b>",
        "a@b (c)",
        "a@[1.2.3.4]",
        "a@[x]",
        '"q q"@b',
        "a@b, c@d",
        "a..b@c",
        "é@b",
        "",
    ],
    "uri": [
        "http://a.b/c",
        "/a",
        "a",
        "",
        "urn:x:y",
        "http://[::1]:80/x",
        "http://a b/",
        "//x",
        "http://a:b/",
        "http://%zz/",
        "/%zz",
        "*",
        "http://a/\x01",
    ],
    "hostname": ["a", "a.b", "a.bc", "a-b", "ab-c", "-a", "a_b.com", "é.com", "1.com", "a.1", ""],
    "ipv4": ["1.2.3.4", "01.2.3.4", "1.2.3", "256.1.1.1", "::ffff:1.2.3.4", "::1", ""],
    "ipv6": [
        "::",
        "::1",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "1::2::3",
        "::ffff:1.2.3.4",
        "::ffff:01.2.3.4",
        "fe80::1%eth0",
        "00001::",
        "1.2.3.4",
        "",
    ],
    "cidr": [
        "1.2.3.0/24",
        "01.2.3.0/24",
        "1.2.3.4",
        "1.2.3.4/33",
        "::/0",
        "::/129",
        "1.2.3.4/",
        "1.2.3.4/08",
    ],
    "mac": [
        "01:23:45:67:89:ab",
        "01-23-45-67-89-ab",
        "01:23:45-67:89:ab",
        "0123.4567.89ab",
        "0123456789ab",
        "01:23:45",
        "01:23:45:67:89:ab:cd:ef",
    ],
    "uuid": [
        "12345678-1234-1234-1234-123456789abc",
        "12345678123412341234123456789ABC",
        "1234",
        "12345678-1234-1234-1234-123456789abg",
    ],
    "uuid3": ["12345678-1234-3234-1234-123456789abc", "12345678-1234-4234-1234-123456789abc"],
    "uuid4": ["12345678-1234-4234-8234-123456789abc", "12345678-1234-4234-7234-123456789abc"],
    "uuid5": ["12345678-1234-5234-8234-123456789abc", "12345678-1234-4234-8234-123456789abc"],
    "isbn": ["0321751043", "978-0321751041", "0321751044", "978-0321751042"],
    "isbn10": ["0-321-75104-3", "080442957X", "0321751044"],
    "isbn13": ["978 0321751041", "9780321751042", "0321751043"],
    "creditcard": ["4111 1111 1111 1111", "4111 1111 1111 1112", "5105105105105100", "x"],
    "ssn": ["123-45-6789", "123456789", "123-45-678a", "123 45 6789"],
    "hexcolor": ["#fff", "ffffff", "#ff", "#gggggg"],
    "rgbcolor": ["rgb(1,2,3)", "rgb( 255 , 0 , 199 )", "rgb(256,0,0)", "rgb(1,2)"],
    "byte": ["aGk=", "YWJj", "", "abc", "a-_=", "aGk=\n"],
    "password": ["", "x"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"],
    "k8s-short-name": ["a", "a-b", "A", "a.b", "-a", "x" * 64, ""],
    "k8s-long-name": ["a.b", "a..b", "a.-b", "x" * 254, "A.b"],
    "int32": ["anything"],
    "fancy": ["anything"],
}

_STATUS: Made = {"subresources": {"status": {}}}
_SCALE: Made = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
}
_RULED = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 3},
        "n": {"type": "integer", "maximum": 5},
        "e": {"type": "string", "enum": ["x"]},
        "l": {"type": "array", "maxItems": 1, "items": _TEXT},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    },
    "x-kubernetes-validations": [{"rule": "true"}],
}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": _TEXT, "status": {"type": "string", "enum": ["True", "False"]}},
    },
}
_STATEFUL = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"replicas": _WHOLE, "text": {"type": "string", "maxLength": 3}},
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"x-kubernetes-int-or-string": True},
                "selector": {"x-kubernetes-int-or-string": True},
                "conditions": _CONDITIONS,
                "phase": {"type": "string", "enum": ["a", "b"]},
            },
        },
    },
}
_LOOSE = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": _TEXT,
                "other": _TEXT,
                "struct": {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}},
                "map": {"type": "object", "additionalProperties": _TEXT},
                "list": {"type": "array", "items": _TEXT},
                "byName": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": _TEXT, "v": _TEXT},
                    },
                },
                "set": {"type": "array", "items": _TEXT},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"a": _TEXT},
                },
                "one": {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}},
            },
        }
    },
}
_SHORT = {"type": "string", "maxLength": 2}
_TIGHT = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["other"],
            "properties": {
                "text": _SHORT,
                "other": _SHORT,
                "struct": {"type": "object", "properties": {"a": _SHORT, "b": _SHORT}, "required": ["b"]},
                "map": {"type": "object", "maxProperties": 1, "additionalProperties": _SHORT},
                "list": {"type": "array", "items": _SHORT},
                "byName": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": _TEXT, "v": _SHORT},
                    },
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "maxProperties": 1,
                    "properties": {"a": _SHORT},
                },
                "one": {
                    "type": "object",
                    "properties": {"a": _TEXT, "b": _TEXT},
                    "allOf": [{"properties": {"a": {"maxLength": 2}}}],
                },
            },
        }
    },
}

DEFINITIONS: dict[str, Made] = {
    "fields": _crd("fields", ("v1", _spec(FIELDS), {})),
    "defaulted": _crd("defaulteds", ("v1", _spec(DEFAULTED), {})),
    "formats": _crd(
        "formats",
        ("v1", _spec({name.replace("-", "x"): {"type": "string", "format": name} for name in FORMATS}), {}),
    ),
    "needy": _crd(
        "needies",
        (
            "v1",
            {
                "type": "object",
                "required": ["apiVersion", "kind", "metadata", "spec"],
                "minProperties": 4,
                "maxProperties": 5,
                "properties": {
                    "apiVersion": {"type": "string", "enum": [f"{GROUP}/v1"]},
                    "kind": {"type": "string", "pattern": "^Nee"},
                    "metadata": {
                        "type": "object",
                        "properties": {"name": {"type": "string", "maxLength": 6}},
                    },
                    "spec": {
                        "type": "object",
                        "required": ["a", "b"],
                        "properties": {"a": _TEXT, "b": _TEXT, "c": OBJECT},
                    },
                    "extra": _TEXT,
                    "more": _TEXT,
                },
                "oneOf": [{"required": ["extra"]}, {"required": ["more"]}],
            },
            {},
        ),
    ),
    "ruled": _crd("ruleds", ("v1", {"type": "object", "properties": {"spec": _RULED}}, {})),
    "free": _crd("frees", ("v1", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {})),
    "stateful": _crd("statefuls", ("v1", _STATEFUL, _SCALE)),
    "plain": _crd("plains", ("v1", _STATEFUL, {})),
    "defaulted status": _crd(
        "starters",
        (
            "v1",
            {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "default": {"a": "x"},
                        "properties": {"a": _TEXT, "b": {"type": "string", "default": "y"}},
                    },
                    "status": {
                        "type": "object",
                        "default": {"phase": "New"},
                        "properties": {"phase": _TEXT, "n": _WHOLE},
                    },
                },
            },
            _STATUS,
        ),
    ),
    "versions": _crd(
        "movers",
        (
            "v1",
            _spec(
                {
                    "shared": {"type": "string", "default": "from v1"},
                    "old": _TEXT,
                    "size": {"type": "integer", "maximum": 5},
                }
            ),
            {},
        ),
        (
            "v2",
            _spec(
                {
                    "shared": _TEXT,
                    "new": {"type": "string", "default": "from v2"},
                    "size": {"type": "integer", "maximum": 9},
                }
            ),
            {},
        ),
    ),
    "loose": _crd("ratchets", ("v1", _LOOSE, {})),
    "tight": _crd("ratchets", ("v1", _TIGHT, {})),
    "embedding": _crd(
        "embedders",
        (
            "v1",
            _spec(
                {
                    "one": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": True,
                        "properties": {
                            "spec": {"type": "object", "properties": {"a": _TEXT}},
                            "metadata": {
                                "type": "object",
                                "properties": {"name": {"type": "string", "maxLength": 3}},
                            },
                        },
                    },
                    "many": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": True,
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    },
                    "named": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": True,
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    },
                }
            ),
            {},
        ),
    ),
}


def _object(definition: str, name: str = "x", version: str = "v1", **content: Any) -> Made:
    kind = DEFINITIONS[definition]["spec"]["names"]["kind"]
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, **content}


def cases() -> Iterator[Case]:
    """Yield every case."""
    for definition, fields in (("fields", FIELDS), ("defaulted", DEFAULTED)):
        for field in fields:
            for index, value in enumerate(VALUES):
                body = _object(definition, spec={field: value})
                yield Case(name=f"{field} {index}", definition=definition, body=body)
    for name, texts in FORMATS.items():
        for index, text in enumerate(texts):
            body = _object("formats", spec={name.replace("-", "x"): text})
            yield Case(name=f"{name} {index}", definition="formats", body=body)
    yield from _created()
    yield from _changed()
    yield from _ratcheted()


def _created() -> Iterator[Case]:
    written: dict[str, list[Made]] = {
        "needy": [
            _object("needy", spec={"a": "a", "b": "b"}, extra="e"),
            _object("needy", spec={"a": "a"}),
            _object("needy"),
            _object("needy", spec={"a": 1, "c": {"x": {"y": 1}}}, extra="e", more="m", unknown=1),
            _object("needy", "longname", spec={"a": "a", "b": "b"}, extra="e"),
            _object("needy", "Bad_Name", spec=[], extra=5),
        ],
        "ruled": [
            _object("ruled", spec={"a": "a"}),
            _object("ruled", spec={"a": "a", "n": 6}),
            _object("ruled", spec={"a": "abcd"}),
            _object("ruled", spec={}),
            _object("ruled", spec={"a": 5}),
            _object("ruled", spec={"a": "a", "e": "y"}),
            _object("ruled", spec={"a": "a", "l": ["a", "b"]}),
            _object("ruled", spec={"a": "a", "s": ["a", "a"]}),
            _object("ruled", spec={"a": "a", "n": 6, "unknown": 1, "s": ["a", "a"]}),
        ],
        "free": [
            _object("free", spec={"a": [1.0, 2.50, None, {"b": None}]}, other=None, data=1e21),
            _object("free", "free", metadata={"name": "x", "labels": {"a": "b"}, "unknown": 1}),
            _object("free", metadata={"name": "x", "labels": {"a": 5}}),
            _object("free", metadata={"name": "x", "labels": []}),
            _object("free", metadata="x"),
            _object("free", metadata={"name": 5}),
            _object("free", metadata={"name": "x", "creationTimestamp": "yesterday"}),
            _object("free", metadata={"name": "x", "finalizers": ["bare", "with.dots", "a/b"], "annotations": None}),
        ],
        "stateful": [
            _object("stateful", spec={"replicas": 3}, status={"replicas": "x", "phase": "z"}),
            _object("stateful", spec={"replicas": -1}),
            _object("stateful", spec={"replicas": 2**31}),
            _object("stateful", spec={"replicas": "3"}),
            _object("stateful", spec={"replicas": 1.5}),
            _object("stateful", spec="x"),
            _object("stateful"),
        ],
        "plain": [
            _object("plain", spec={"replicas": 3}, status={"replicas": 1, "phase": "a"}),
            _object("plain", status={"phase": "z", "conditions": [{"type": "a"}, {"type": "a", "status": "Maybe"}]}),
        ],
        "defaulted status": [
            _object("defaulted status"),
            _object("defaulted status", spec=None, status={"n": 1}),
            _object("defaulted status", spec={"b": None}),
        ],
        "embedding": [
            _object("embedding", spec={"one": _embedded(spec={"a": "x", "b": 1}, status={})}),
            _object("embedding", spec={"one": _embedded(metadata={"name": "long", "bogus": 1, "labels": {"x": "y"}})}),
            _object("embedding", spec={"one": {}}),
            _object("embedding", spec={"one": None, "many": None, "named": {"a": None}}),
            _object("embedding", spec={"many": [_embedded(), _embedded(kind=5)]}),
            _object("embedding", spec={"many": [_embedded(metadata={"x": 1}), {}, _embedded(metadata={"y": {"z": 1}})]}),
            _object("embedding", spec={"named": {"k": _embedded(metadata={"x": 1, "uid": 5})}}),
            _object("embedding", spec={"named": {"k": _embedded(metadata={"x": 1, "creationTimestamp": "2020-01-01T00:00:00+01:00"})}}),
            _object("embedding", spec={"named": {"k.l": {"kind": "x"}}, "one": {"apiVersion": "v1"}}),
            _object("embedding", spec={"one": _embedded(metadata={"namespace": "A", "generateName": "A_", "ownerReferences": [{}]})}),
        ],
        "versions": [
            _object("versions", spec={}),
            _object("versions", spec={"shared": "s", "old": "o", "new": "n", "size": 7}),
        ],
    }  # fmt: skip
    for definition, bodies in written.items():
        for index, body in enumerate(bodies):
            yield Case(name=f"{definition} created {index}", definition=definition, body=body)
    for index, spec in enumerate(({}, {"shared": "s", "old": "o", "new": "n", "size": 7}, {"size": 10})):
        body = _object("versions", version="v2", spec=spec)
        yield Case(name=f"versions as v2 {index}", definition="versions", version="v2", body=body)


def _embedded(**changes: Any) -> Made:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **changes}


def _changed() -> Iterator[Case]:
    first = _object("stateful", spec={"replicas": 1, "text": "a"})
    written: list[tuple[str, str, Made]] = [
        ("stateful", "", _object("stateful", spec={"replicas": 1, "text": "a"}, status={"phase": "a"})),
        ("stateful", "", _object("stateful", spec={"replicas": 2, "text": "abcd"})),
        ("stateful", "", _object("stateful", spec={"replicas": 1.0, "text": "a"})),
        (
            "stateful",
            "",
            _object(
                "stateful", metadata={"name": "x", "labels": {"a": "b"}}, spec={"replicas": 1, "text": "a"}
            ),
        ),
        (
            "stateful",
            "status",
            _object("stateful", spec={"replicas": -5, "text": "abcd"}, status={"phase": "a", "replicas": 2}),
        ),
        (
            "stateful",
            "status",
            _object("stateful", metadata={"name": "x", "labels": {"a": "b"}}, status={"phase": "c"}),
        ),
        ("stateful", "status", _object("stateful", status={"replicas": "x", "selector": 5})),
        (
            "stateful",
            "status",
            _object(
                "stateful", status={"replicas": -1, "bogus": 1, "conditions": [{"type": "a"}, {"type": "a"}]}
            ),
        ),
        ("stateful", "status", _object("stateful", status="done")),
        ("stateful", "status", _object("stateful", status=None)),
        ("stateful", "status", _object("stateful")),
        ("plain", "", _object("plain", spec={"replicas": 1, "text": "a"}, status={"phase": "a"})),
        ("plain", "", _object("plain", spec={"replicas": 1, "text": "a"}, status={"phase": "z"})),
    ]
    for index, (definition, subresource, body) in enumerate(written):
        before = first if definition == "stateful" else {**first, "kind": "Plains"}
        yield Case(
            name=f"{definition} changed {index}", definition=definition, before=before, body=body, subresource=subresource
        )  # fmt: skip


def _ratcheted() -> Iterator[Case]:
    """Yield changes of an object that its definition would refuse today."""
    spec: Made = {
        "text": "long",
        "struct": {"a": "long"},
        "map": {"a": "long", "b": "long"},
        "list": ["long", "x"],
        "byName": [{"name": "a", "v": "long"}, {"name": "b", "v": "x"}],
        "set": ["a", "a"],
        "open": {"a": "long", "b": 1},
        "one": {"a": "long", "b": "x"},
    }
    changes: list[Made] = [
        spec,
        {**spec, "other": "ok"},
        {**spec, "other": "long"},
        {**spec, "other": "ok", "text": "longer"},
        {**spec, "other": "ok", "struct": {"a": "long", "b": "x"}},
        {**spec, "other": "ok", "struct": {"a": "longer"}},
        {**spec, "other": "ok", "map": {"a": "long"}},
        {**spec, "other": "ok", "map": {"a": "long", "b": "long", "c": "x"}},
        {**spec, "other": "ok", "map": {"a": "long", "b": "longer"}},
        {**spec, "other": "ok", "list": ["long", "y"]},
        {**spec, "other": "ok", "list": ["x", "long"]},
        {**spec, "other": "ok", "byName": [{"name": "b", "v": "y"}, {"name": "a", "v": "long"}]},
        {**spec, "other": "ok", "byName": [{"name": "a", "v": "longer"}]},
        {**spec, "other": "ok", "byName": [{"name": "c", "v": "long"}]},
        {**spec, "other": "ok", "set": ["a", "a", "b"]},
        {**spec, "other": "ok", "set": ["a", "b", "b"]},
        {**spec, "other": "ok", "open": {"a": "long", "b": 1, "c": 2}},
        {**spec, "other": "ok", "open": {"a": "long", "b": 2}},
        {**spec, "other": "ok", "one": {"a": "long", "b": "y"}},
        {"other": "ok", "set": ["b", "b"]},
    ]
    for index, change in enumerate(changes):
        yield Case(
            name=f"ratcheted {index}",
            definition="loose",
            then="tight",
            before=_object("loose", spec=spec),
            body=_object("tight", spec=change),
        )
    clean = {"text": "ab", "set": ["a"], "other": "ok"}
    for index, change in enumerate(({**clean, "set": ["a", "a"]}, {**clean, "text": "abc"})):
        yield Case(
            name=f"unratcheted {index}",
            definition="loose",
            then="tight",
            before=_object("loose", spec=clean),
            body=_object("tight", spec=change),
        )
