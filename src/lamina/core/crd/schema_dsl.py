"""The parts of a definition, as families write them: the schemas of fields, their rules, and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.core.crd.descriptions import described
from lamina.objects.types import GroupKind, Made, Obj

AMOUNT = "^((100|[0-9]{1,2})%|[0-9]+)$"


def text(**rules: Any) -> Made:
    return {"type": "string", **rules}


def choice(*values: str, **rules: Any) -> Made:
    return {"type": "string", "enum": list(values), **rules}


def whole(format: str = "int32", **rules: Any) -> Made:
    return {"type": "integer", "format": format, **rules}


def yes_or_no(**rules: Any) -> Made:
    return {"type": "boolean", **rules}


def moment(**rules: Any) -> Made:
    return {"type": "string", "format": "date-time", **rules}


def amount(pattern: str = AMOUNT, **rules: Any) -> Made:
    """Return an integer or a percentage."""
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": True,
        **rules,
    }


def several(items: Obj, **rules: Any) -> Made:
    return {"type": "array", "items": items, **rules}


def by_key(items: Obj, *keys: str, **rules: Any) -> Made:
    """Return a list whose items have unique keys."""
    return several(
        items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), **rules}
    )


def map_of(values: Obj, **rules: Any) -> Made:
    return {"type": "object", "additionalProperties": values, **rules}


def fields(properties: Obj, *required: str, **rules: Any) -> Made:
    made: Made = {"type": "object", "properties": dict(properties), **rules}
    return {**made, "required": list(required)} if required else made


def anything(**rules: Any) -> Made:
    """Return an object with any fields."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **rules}


def embedded() -> Made:
    """Return any object of Kubernetes."""
    return anything(**{"x-kubernetes-embedded-resource": True})


def validated(*rules: Obj) -> Made:
    """Return what a schema has beside its fields to be validated by rules."""
    return {"x-kubernetes-validations": list(rules)}


def immutable(field: str, rule: str = "") -> Made:
    """Return the rule that a field of an object stays as it is, present or absent."""
    is_present = f"has(self.{field}) == has(oldSelf.{field})"
    same = f"({is_present}) && (!has(self.{field}) || (self.{field} == oldSelf.{field}))"
    return {"rule": rule or same, "message": f"{field} is immutable"}


def immutable_once_set(field: str) -> Made:
    """Return the rule that a field of an object stays as it is once it is present."""
    return immutable(
        field, f"!has(oldSelf.{field}) || (has(self.{field}) && (self.{field} == oldSelf.{field}))"
    )


def label_selector() -> Made:
    requirement = fields(
        {
            "key": text(),
            "operator": text(),
            "values": several(text(), **{"x-kubernetes-list-type": "atomic"}),
        },
        "key",
        "operator",
    )
    return fields(
        {
            "matchExpressions": several(requirement, **{"x-kubernetes-list-type": "atomic"}),
            "matchLabels": map_of(text()),
        },
        **{"x-kubernetes-map-type": "atomic"},
    )


CONDITION: Obj = fields(
    {
        "type": text(
            maxLength=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        "status": choice("True", "False", "Unknown"),
        "reason": text(maxLength=1024, minLength=1, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        "message": text(maxLength=32768),
        "lastTransitionTime": moment(),
        "observedGeneration": whole("int64", minimum=0),
    },
    "lastTransitionTime",
    "message",
    "reason",
    "status",
    "type",
)


def conditions(**rules: Any) -> Made:
    """Return standard conditions, one of each type."""
    return by_key(CONDITION, "type", **rules)


def column(name: str, path: str, kind: str = "string", **rules: Any) -> Made:
    return {"name": name, "type": kind, "jsonPath": path, **rules}


def condition_path(condition: str, field: str) -> str:
    """Return the JSONPath of the status or the reason of a condition."""
    return f'.status.conditions[?(@.type=="{condition}")].{field}'


AGE: Obj = column("Age", ".metadata.creationTimestamp", "date")


def definition(
    kind: GroupKind,
    plural: str,
    shape: Obj,
    *,
    versions: Sequence[str],
    descriptions: Mapping[str, str],
    description: str,
    short: Sequence[str] = (),
    columns: Sequence[Obj] = (),
    namespaced: bool = True,
) -> Made:
    """
    Return the definition of a kind; the first version is stored, and all have the same schema.

    `descriptions` are those of its fields, `description` says what the kind itself is for.
    """
    named = {"apiVersion": text(), "kind": text(), "metadata": {"type": "object"}}
    schema = described(
        {**shape, "type": "object", "properties": {**named, **shape["properties"]}},
        descriptions,
        kind=description,
    )
    names: Made = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": plural,
        "singular": kind.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {**names, "shortNames": list(short)} if short else names,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                    **({"subresources": {"status": {}}} if "status" in shape["properties"] else {}),
                    **({"additionalPrinterColumns": list(columns)} if columns else {}),
                }
                for version in versions
            ],
        },
    }
