"""Definitions good and bad, each with a name; the real server's answers to them are in golden/definitions.json."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Made = dict[str, Any]

GROUP = "gold.example.com"
OBJECT = {"type": "object"}


def definition(schema: Any = None, /, **version: Any) -> Made:
    """Return a definition with one version; `version` adds to it, and a schema of None leaves it out."""
    made: Made = {"name": "v1", "served": True, "storage": True, **version}
    if schema is not None:
        made["schema"] = {"openAPIV3Schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [made],
        },
    }


def changed(change: Callable[[Made], Any], base: Made | None = None) -> Made:
    """Return a definition after an edit."""
    made = copy.deepcopy(base or definition(OBJECT))
    change(made)
    return made


def field(schema: Any, **beside: Any) -> Made:
    """Return a definition whose objects have a field `spec.f` of this schema."""
    spec = {"type": "object", "properties": {"f": schema}, **beside}
    return definition({"type": "object", "properties": {"spec": spec}})


def spec_of(**changes: Any) -> Made:
    return changed(lambda crd: crd["spec"].update(changes))


def names_of(**changes: Any) -> Made:
    return changed(lambda crd: crd["spec"]["names"].update(changes))


def versions_of(*versions: Mapping[str, Any]) -> Made:
    def change(crd: Made) -> None:
        crd["spec"]["versions"] = [
            {"served": True, "storage": False, "schema": {"openAPIV3Schema": OBJECT}, **version}
            for version in versions
        ]

    return changed(change)


def webhook(**client: Any) -> Made:
    return spec_of(
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }
    )


def protected(annotation: str | None) -> Made:
    def change(crd: Made) -> None:
        crd["spec"]["group"] = "things.k8s.io"
        crd["metadata"]["name"] = "things.things.k8s.io"
        if annotation is not None:
            crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}

    return changed(change)


_LISTED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_ITEM = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_SELECTABLE = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                **{letter: {"type": "string"} for letter in "abcdefghi"},
                "number": {"type": "number"},
                "whole": {"type": "integer"},
                "yes": {"type": "boolean"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "string"}},
            },
        },
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


def selectable(*paths: str) -> Made:
    return definition(_SELECTABLE, selectableFields=[{"jsonPath": path} for path in paths])


def column(**said: Any) -> Made:
    return definition(OBJECT, additionalPrinterColumns=[said])


def rule(**said: Any) -> Made:
    return field(
        {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [said]}
    )


def cases() -> Iterator[tuple[str, Made]]:
    """Yield every case."""
    yield "plain", definition(OBJECT)
    yield from _of_names()
    yield from _of_versions()
    yield from _of_structure()
    yield from _of_keywords()
    yield from _of_defaults()
    yield from _of_columns()
    yield from _of_conversion()


def _of_names() -> Iterator[tuple[str, Made]]:
    yield "wrong name", changed(lambda crd: crd["metadata"].update(name="wrong.gold.example.com"))
    yield "name in capitals", changed(lambda crd: crd["metadata"].update(name="Things.gold.example.com"))
    yield "no name", changed(lambda crd: crd["metadata"].pop("name"))
    yield "bad label", changed(lambda crd: crd["metadata"].update(labels={"a b": "c d"}))
    yield "bare finalizer", changed(lambda crd: crd["metadata"].update(finalizers=["bare"]))
    yield "empty group", spec_of(group="")
    yield "undotted group", spec_of(group="things")
    yield "bad group", spec_of(group="Gold_.com")
    yield "no scope", changed(lambda crd: crd["spec"].pop("scope"))
    yield "bad scope", spec_of(scope="Galaxy")
    yield "no plural", changed(lambda crd: crd["spec"]["names"].pop("plural"))
    yield "no kind", changed(lambda crd: crd["spec"]["names"].pop("kind"))
    yield "bad plural", names_of(plural="Things")
    yield "bad singular", names_of(singular="thing_s")
    yield "bad kind", names_of(kind="Th-ing-")
    yield "bad list kind", names_of(listKind="Thing_List")
    yield "list kind like kind", names_of(listKind="Thing")
    yield "bad short names", names_of(shortNames=["ok", "Not", "not_", "x" * 64])
    yield "bad categories", names_of(categories=["all", "All", "1x"])
    yield "good names", names_of(singular="thingy", listKind="Things", shortNames=["th"], categories=["all"])
    yield "protected without approval", protected(None)
    yield "protected with nonsense", protected("because")
    yield "protected with url", protected("https://github.com/kubernetes/kubernetes/pull/1")
    yield "protected with path", protected("/kubernetes/pull/1")
    yield "protected unapproved", protected("unapproved, for a test")
    yield (
        "kubernetes.io unprotected prefix",
        changed(
            lambda crd: (
                crd["spec"].update(group="notkubernetes.io"),
                crd["metadata"].update(name="things.notkubernetes.io"),
            )
        ),
    )
    yield "preserving", spec_of(preserveUnknownFields=True)
    yield (
        "preserving with defaults",
        changed(
            lambda crd: crd["spec"].update(preserveUnknownFields=True),
            field({"type": "string", "default": "x"}),
        ),
    )
    yield (
        "preserving with webhook",
        changed(
            lambda crd: crd["spec"].update(preserveUnknownFields=True), webhook(url="https://example.com/x")
        ),
    )


def _of_versions() -> Iterator[tuple[str, Made]]:
    other = {"openAPIV3Schema": {"type": "object", "properties": {"spec": OBJECT}}}
    bad = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    yield "no versions", changed(lambda crd: crd["spec"].pop("versions"))
    yield "no schema", definition(None)
    yield "empty schema holder", definition(None, schema={})
    yield "nothing stored", definition(OBJECT, storage=False)
    yield "two stored", versions_of({"name": "v1", "storage": True}, {"name": "v2", "storage": True})
    yield "two alike", versions_of({"name": "v1", "storage": True}, {"name": "v2"})
    yield "two unlike", versions_of({"name": "v1", "storage": True}, {"name": "v2", "schema": other})
    yield (
        "two alike and bad",
        versions_of({"name": "v1", "storage": True, "schema": bad}, {"name": "v2", "schema": bad}),
    )
    yield "one of two bad", versions_of({"name": "v1", "storage": True}, {"name": "v2", "schema": bad})
    yield (
        "one of two without schema",
        versions_of({"name": "v1", "storage": True}, {"name": "v2", "schema": None}),
    )
    yield (
        "both without schema",
        versions_of({"name": "v1", "storage": True, "schema": None}, {"name": "v2", "schema": None}),
    )
    yield "same version twice", versions_of({"name": "v1", "storage": True}, {"name": "v1"})
    yield (
        "bad version names",
        versions_of({"name": "V1", "storage": True}, {"name": "v.2"}, {"name": "", "schema": other}),
    )
    yield "none served", definition(OBJECT, served=False)
    yield "deprecated", definition(OBJECT, deprecated=True)
    yield "deprecated with words", definition(OBJECT, deprecated=True, deprecationWarning="use another")
    yield "words without deprecation", definition(OBJECT, deprecationWarning="use another")
    yield "deprecated with no words", definition(OBJECT, deprecated=True, deprecationWarning="")
    yield "deprecated with many words", definition(OBJECT, deprecated=True, deprecationWarning="x" * 257)
    yield "deprecated with odd words", definition(OBJECT, deprecated=True, deprecationWarning="é\tx\x01")
    yield (
        "shared columns and scale",
        versions_of(
            {
                "name": "v1",
                "storage": True,
                "subresources": {"scale": {}},
                "additionalPrinterColumns": [{"name": "a"}],
            },
            {"name": "v2", "subresources": {"scale": {}}, "additionalPrinterColumns": [{"name": "a"}]},
        ),
    )
    yield (
        "own columns and scale",
        versions_of(
            {
                "name": "v1",
                "storage": True,
                "additionalPrinterColumns": [{"name": "a", "type": "x", "jsonPath": "a"}],
            },
            {"name": "v2", "subresources": {"scale": {}, "status": {}}},
        ),
    )
    yield (
        "nothing stored and much else",
        versions_of(
            {
                "name": "v1",
                "deprecated": True,
                "deprecationWarning": "w",
                "subresources": {"status": {}, "scale": _SCALE},
            },
            {
                "name": "v2",
                "schema": other,
                "additionalPrinterColumns": [
                    {"name": "a", "type": "string", "jsonPath": ".a", "priority": 1}
                ],
                "selectableFields": [{"jsonPath": ".spec"}],
            },
        ),
    )
    yield (
        "selectable with other schemas",
        versions_of(
            {
                "name": "v1",
                "storage": True,
                "schema": {"openAPIV3Schema": _SELECTABLE},
                "selectableFields": [{"jsonPath": ".spec.a"}],
            },
            {"name": "v2", "schema": other, "selectableFields": [{"jsonPath": ".spec.a"}]},
        ),
    )
    yield (
        "unlike selectable with one schema",
        versions_of(
            {
                "name": "v1",
                "storage": True,
                "schema": {"openAPIV3Schema": _SELECTABLE},
                "selectableFields": [{"jsonPath": ".spec.a"}],
            },
            {
                "name": "v2",
                "schema": {"openAPIV3Schema": _SELECTABLE},
                "selectableFields": [{"jsonPath": ".spec.b"}],
            },
        ),
    )


def _of_structure() -> Iterator[tuple[str, Made]]:
    yield "root without type", definition({"properties": {}})
    yield "root of strings", definition({"type": "string"})
    yield "root of nothing known", definition({"type": "thing"})
    yield "root nullable", definition({"type": "object", "nullable": True})
    yield "root open", definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    yield "root open and untyped", definition({"x-kubernetes-preserve-unknown-fields": True})
    yield "root closed by word", definition({"type": "object", "x-kubernetes-preserve-unknown-fields": False})
    yield "root a map", definition({"type": "object", "additionalProperties": {"type": "string"}})
    yield "root a free map", definition({"type": "object", "additionalProperties": True})
    yield "untyped field", field({})
    yield "untyped items", field({"type": "array", "items": {}})
    yield "untyped values", field({"type": "object", "additionalProperties": {}})
    yield "array without items", field({"type": "array"})
    yield "array with several items", field({"type": "array", "items": [OBJECT, OBJECT]})
    yield "array with empty items", field({"type": "array", "items": []})
    yield "unknown type", field({"type": "file"})
    yield "null type", field({"type": "null"})
    yield (
        "properties and values",
        field({"type": "object", "properties": {"a": OBJECT}, "additionalProperties": OBJECT}),
    )
    yield (
        "properties and no others",
        field({"type": "object", "properties": {"a": OBJECT}, "additionalProperties": False}),
    )
    yield (
        "properties and any others",
        field({"type": "object", "properties": {"a": OBJECT}, "additionalProperties": True}),
    )
    yield "no values", field({"type": "object", "additionalProperties": False})
    yield "int or string", field({"x-kubernetes-int-or-string": True})
    yield (
        "int or string spelled out",
        field({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    )
    yield (
        "int or string in all of",
        field(
            {
                "x-kubernetes-int-or-string": True,
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}],
            }
        ),
    )
    yield (
        "string or int",
        field({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
    )
    yield (
        "int or string without saying so",
        field({"type": "string", "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    )
    yield (
        "int or string and open",
        field({"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
    )
    yield (
        "int or string and embedded",
        field({"x-kubernetes-int-or-string": True, "x-kubernetes-embedded-resource": True}),
    )
    yield (
        "embedded",
        field(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        ),
    )
    yield (
        "embedded without type",
        field({"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
    )
    yield "embedded string", field({"type": "string", "x-kubernetes-embedded-resource": True})
    yield "embedded and empty", field({"type": "object", "x-kubernetes-embedded-resource": True})
    yield (
        "embedded map",
        field({"type": "object", "x-kubernetes-embedded-resource": True, "additionalProperties": OBJECT}),
    )
    yield (
        "embedded with odd identity",
        field(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {
                    "kind": {"type": "integer"},
                    "apiVersion": OBJECT,
                    "metadata": {"type": "string"},
                },
            }
        ),
    )
    yield (
        "embedded in metadata",
        field(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {
                    "metadata": {
                        "type": "object",
                        "properties": {
                            "x": {
                                "type": "object",
                                "x-kubernetes-embedded-resource": True,
                                "properties": {"y": OBJECT},
                            }
                        },
                    }
                },
            }
        ),
    )
    for name, metadata in {
        "name": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
        "both names": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
        },
        "labels": {"type": "object", "properties": {"labels": {"type": "object"}}},
        "name and labels": {"type": "object", "properties": {"name": {"type": "string"}, "labels": OBJECT}},
        "description": {"type": "object", "description": "mine"},
        "required": {"type": "object", "required": ["name"]},
        "string": {"type": "string"},
        "no type": {},
        "default": {"type": "object", "default": {"name": "x"}},
        "example": {"type": "object", "example": {"name": "x"}, "externalDocs": {"url": "x"}},
    }.items():
        yield f"metadata {name}", definition({"type": "object", "properties": {"metadata": metadata}})
    yield (
        "odd identity",
        definition({"type": "object", "properties": {"kind": {"type": "integer"}, "apiVersion": OBJECT}}),
    )
    yield (
        "default kind",
        definition({"type": "object", "properties": {"kind": {"type": "string", "default": "Thing"}}}),
    )
    for junctor in ("allOf", "anyOf", "oneOf"):
        yield (
            f"{junctor} narrowing",
            field({"type": "string", junctor: [{"minLength": 1}, {"pattern": "^a"}]}),
        )
        yield f"{junctor} typed", field({"type": "string", junctor: [{"type": "string"}, {"minLength": 1}]})
    for keyword, value in {
        "default": 1,
        "title": "t",
        "description": "d",
        "nullable": True,
        "additionalProperties": OBJECT,
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-list-type": "set",
        "x-kubernetes-list-map-keys": ["a"],
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{"rule": "true"}],
    }.items():
        yield f"{keyword} in not", field({"type": "object", "not": {keyword: value}})
        yield (
            f"{keyword} deep in one of",
            field(
                {
                    "type": "object",
                    "properties": {"a": OBJECT},
                    "oneOf": [{"properties": {"a": {"anyOf": [{keyword: value}]}}}],
                }
            ),
        )
    yield (
        "metadata in a branch",
        definition({"type": "object", "allOf": [{"properties": {"metadata": {"minProperties": 1}}}]}),
    )
    yield "no values in a branch", field({"type": "object", "allOf": [{"additionalProperties": False}]})
    yield "free values in a branch", field({"type": "object", "allOf": [{"additionalProperties": True}]})
    yield (
        "branch of the unknown",
        definition({"type": "object", "allOf": [{"properties": {"spec": {"required": ["a"]}}}]}),
    )
    yield (
        "branch of unknown items",
        definition(
            {
                "type": "object",
                "properties": {"spec": {"type": "array", "items": OBJECT}, "other": OBJECT},
                "anyOf": [
                    {"properties": {"spec": {"items": {"items": {"minLength": 1}}}}},
                    {"properties": {"other": {"items": {"minLength": 1}}}},
                ],
                "not": {
                    "oneOf": [{"properties": {"spec": {"items": {"properties": {"x": {"minLength": 1}}}}}}]
                },
            }
        ),
    )
    yield (
        "deep branch of the unknown",
        field({"type": "object", "allOf": [{"properties": {"x": {"minLength": 1}}}]}),
    )


def _of_keywords() -> Iterator[tuple[str, Made]]:
    for keyword, value in {
        "id": "x",
        "$schema": "x",
        "$ref": "#/definitions/x",
        "additionalItems": OBJECT,
        "patternProperties": {"x": OBJECT},
        "definitions": {"x": OBJECT},
        "dependencies": {"x": ["y"]},
        "uniqueItems": True,
    }.items():
        yield f"keyword {keyword}", field({"type": "object", keyword: value})
    yield (
        "everything forbidden",
        field(
            {
                "type": "array",
                "id": "x",
                "$ref": "y",
                "items": [{"type": "null"}],
                "definitions": {"d": {"uniqueItems": True}},
                "dependencies": {"e": {"id": "z"}, "f": ["g"]},
                "not": {"uniqueItems": True},
            }
        ),
    )
    for pattern in (
        "[a",
        "(a",
        "a)",
        "*",
        "a**",
        "\\",
        "\\8",
        "[z-a]",
        "(?!a)",
        "a{1001}",
        "\\C",
        "^\\d+$",
        "(?P<n>a)",
    ):
        yield f"pattern {pattern}", field({"type": "string", "pattern": pattern})
    yield "list type of object", field({"type": "object", "x-kubernetes-list-type": "atomic"})
    yield (
        "list type of nothing",
        field({"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-list-type": "atomic"}),
    )
    yield (
        "unknown list type",
        field({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
    )
    yield "map type of string", field({"type": "string", "x-kubernetes-map-type": "atomic"})
    yield (
        "map type of nothing",
        field({"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-map-type": "granular"}),
    )
    yield "unknown map type", field({"type": "object", "x-kubernetes-map-type": "loose"})
    yield "good map list", field({**_LISTED, "items": _ITEM})
    yield (
        "keys without list type",
        field({"type": "array", "items": _ITEM, "x-kubernetes-list-map-keys": ["name"]}),
    )
    yield "keys of a set", field({**_LISTED, "items": _ITEM, "x-kubernetes-list-type": "set"})
    yield "map list without keys", field({"type": "array", "items": _ITEM, "x-kubernetes-list-type": "map"})
    yield "map list without items", field(_LISTED)
    yield "map list of several", field({**_LISTED, "items": [_ITEM]})
    yield "map list of strings", field({**_LISTED, "items": {"type": "string"}})
    yield (
        "map list with unknown key",
        field({**_LISTED, "items": _ITEM, "x-kubernetes-list-map-keys": ["name", "nope"]}),
    )
    yield (
        "map list with key twice",
        field({**_LISTED, "items": _ITEM, "x-kubernetes-list-map-keys": ["name", "name"]}),
    )
    yield (
        "map list with object key",
        field({**_LISTED, "items": {"type": "object", "required": ["name"], "properties": {"name": OBJECT}}}),
    )
    yield (
        "map list with optional key",
        field({**_LISTED, "items": {"type": "object", "properties": {"name": {"type": "string"}}}}),
    )
    yield (
        "map list with default key",
        field(
            {
                **_LISTED,
                "items": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}},
            }
        ),
    )
    yield (
        "map list with nullable key",
        field(
            {
                **_LISTED,
                "items": {
                    "type": "object",
                    "nullable": True,
                    "required": ["name"],
                    "properties": {"name": {"type": "string", "nullable": True}},
                },
            }
        ),
    )
    yield "set of objects", field({"type": "array", "x-kubernetes-list-type": "set", "items": OBJECT})
    yield (
        "set of atoms",
        field(
            {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {**OBJECT, "x-kubernetes-map-type": "atomic"},
            }
        ),
    )
    yield (
        "set of sets",
        field(
            {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            }
        ),
    )
    yield (
        "set of lists",
        field(
            {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "array", "items": {"type": "string"}},
            }
        ),
    )
    yield (
        "set of nullables",
        field(
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}}
        ),
    )
    yield "rule of nothing", rule(rule="  ")
    yield "rule with empty message", rule(rule="true", message="  ")
    yield "rule with broken message", rule(rule="true", message="a\nb")
    yield "broken rule", rule(rule="true ||\nfalse")
    yield "broken rule with message", rule(rule="true ||\nfalse", message="m")
    yield "rule with empty expression", rule(rule="true", messageExpression=" ")
    yield "rule with bad reason", rule(rule="true", reason="Because")
    yield "rule with good reason", rule(rule="true", reason="FieldValueForbidden")
    yield "rule with good path", rule(rule="true", fieldPath=".a")
    yield "rule with quoted path", rule(rule="true", fieldPath="['a']")
    for path in (" ", "a", ".b", ".a.b", ".a\n", "['b']", "['a", "[a]", ".", "[0]", "['\\q']"):
        yield f"rule with path {path!r}", rule(rule="true", fieldPath=path)
    status: Made = {"subresources": {"status": {}}}
    for keyword, value in {
        "minProperties": 1,
        "enum": [1],
        "default": {},
        "oneOf": [{"required": ["spec"]}],
        "not": {"required": ["nope"]},
        "x-kubernetes-map-type": "atomic",
        "nullable": True,
        "title": "t",
        "required": ["spec"],
        "example": {},
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": "true"}],
    }.items():
        yield f"status and {keyword} at the root", definition({"type": "object", keyword: value}, **status)
    yield "status and a root of strings", definition({"type": "string"}, **status)
    yield (
        "unknown formats",
        definition(
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "format": "fancy"},
                    "b": {"type": "string", "format": "date-time"},
                    "c": {"type": "integer", "format": "int32"},
                    "d": {"type": "string", "format": "int32"},
                },
            }
        ),
    )


def _of_defaults() -> Iterator[tuple[str, Made]]:
    for name, schema in {
        "of wrong type": {"type": "string", "default": 1},
        "too large": {"type": "integer", "maximum": 5, "default": 6},
        "not listed": {"type": "string", "enum": ["a"], "default": "b"},
        "of bad format": {"type": "string", "format": "date", "default": "x"},
        "of bad number format": {"type": "integer", "format": "int64", "default": "x"},
        "of fraction": {"type": "integer", "format": "int64", "default": 1.5},
        "null": {"type": "string", "default": None},
        "fine": {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": "x"}},
        "with unknown field": {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "default": {"b": "x"},
        },
        "with wrong field": {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": 1}},
        "lacking": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "string"}},
            "default": {},
        },
        "int or string": {"x-kubernetes-int-or-string": True, "default": 5},
        "odd int or string": {"x-kubernetes-int-or-string": True, "default": True},
        "in items": {"type": "array", "items": {"type": "string", "default": 1}},
        "in values": {"type": "object", "additionalProperties": {"type": "string", "default": 1}},
        "of no branch": {"type": "string", "default": "x", "oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}},
        },
        "embedded without kind": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"apiVersion": "v1", "metadata": {"name": "x"}},
        },
        "embedded with bad labels": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}},
        },
        "embedded with mistyped metadata": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": 5}},
        },
        "embedded kind": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {
                "kind": {"type": "string", "default": "Pod"},
                "apiVersion": {"type": "string", "default": "a/b/c"},
            },
        },
        "embedded metadata": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {
                "metadata": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "default": "x/y"},
                        "labels": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                            "default": {"a": "b c"},
                        },
                        "finalizers": {"type": "array", "items": {"type": "string"}, "default": ["a", 5]},
                        "annotations": {
                            "type": "object",
                            "additionalProperties": {"type": "string", "default": "x"},
                        },
                    },
                }
            },
        },
    }.items():
        yield f"default {name}", field(schema)


def _of_columns() -> Iterator[tuple[str, Made]]:
    good = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
    yield "good column", column(**good)
    yield "empty column", column()
    yield "column of bad type", column(**good | {"type": "list"})
    yield "column of bad format", column(**good | {"format": "fancy"})
    yield "column with bad path", column(**good | {"jsonPath": "spec.a"})
    yield "column with broken path", column(**good | {"jsonPath": ".spec[?(@.a"})
    yield "column with dot", column(**good | {"jsonPath": "."})
    yield (
        "good scale",
        definition(OBJECT, subresources={"scale": {**_SCALE, "labelSelectorPath": ".status.selector"}}),
    )
    yield "empty scale", definition(OBJECT, subresources={"scale": {}})
    yield (
        "scale elsewhere",
        definition(
            OBJECT,
            subresources={
                "scale": {
                    "specReplicasPath": ".status.x",
                    "statusReplicasPath": ".spec.x",
                    "labelSelectorPath": ".metadata.x",
                }
            },
        ),
    )
    yield (
        "scale with bad paths",
        definition(
            OBJECT,
            subresources={
                "scale": {"specReplicasPath": "x", "statusReplicasPath": ".", "labelSelectorPath": "y"}
            },
        ),
    )
    yield "good selectable", selectable(".spec.a", ".spec.whole", ".spec.yes", ".spec.map.x")
    yield "eight selectable", selectable(*(f".spec.{letter}" for letter in "abcdefgh"))
    yield "nine selectable", selectable(*(f".spec.{letter}" for letter in "abcdefghi"))
    yield "nine selectable, two alike", selectable(*(f".spec.{letter}" for letter in "aabcdefgh"))
    for path in (
        "", ".spec", ".spec.number", ".spec.nope", "spec.a", ".spec['a']", ".spec.list", ".spec.list[0]", ".metadata.name",
        ".metadata.labels", ".", "..", ".spec..a", ".spec.a.b", ".spec.map",
    ):  # fmt: skip
        yield f"selectable {path!r}", selectable(path)


def _of_conversion() -> Iterator[tuple[str, Made]]:
    yield "no conversion", spec_of(conversion={"strategy": "None"})
    yield "empty conversion", spec_of(conversion={"strategy": ""})
    yield "odd conversion", spec_of(conversion={"strategy": "Magic"})
    yield (
        "no conversion with webhook",
        spec_of(
            conversion={
                "strategy": "None",
                "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
            }
        ),
    )
    yield "webhook of nothing", spec_of(conversion={"strategy": "Webhook"})
    yield (
        "webhook without versions",
        spec_of(
            conversion={
                "strategy": "Webhook",
                "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": []},
            }
        ),
    )
    for versions in (["v2"], ["v1", "v1"], ["V1", "v1beta1"]):
        yield (
            f"webhook with versions {versions}",
            spec_of(
                conversion={
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": versions},
                }
            ),
        )
    service = {"name": "n", "namespace": "ns"}
    yield "webhook of neither", webhook()
    yield "webhook of both", webhook(url="https://x", service=service)
    for url in (
        "https://example.com/convert", "http://example.com", "https://", "example.com", "https://u:p@example.com/x", "https://example.com/x?y=z#f", "https://a b/", "://x", "https://[::1]:8443/x",
        "https://h:port/", "%zz",
    ):  # fmt: skip
        yield f"webhook url {url}", webhook(url=url)
    yield "webhook service", webhook(service=service)
    yield "webhook service with path", webhook(service={**service, "path": "/a/b/", "port": 8443})
    yield "webhook service nameless", webhook(service={"name": "", "namespace": "ns"})
    yield "webhook service homeless", webhook(service={"name": "n", "namespace": ""})
    yield "webhook service with bad port", webhook(service={**service, "port": 70000})
    for path in ("x", "//", "/a//b", "/A", "/"):
        yield f"webhook service path {path}", webhook(service={**service, "path": path})
    yield "webhook bundle", webhook(url="https://x", caBundle="bm90IGEgYnVuZGxl")
