"""Random objects with the right types and otherwise arbitrary values."""

from collections.abc import Mapping
from random import Random
from typing import Any

from lamina.server.kinds.builtin.definitions import definition

_WORDS = (
    "", "a", "b", "c", "x.y", "A_b", "-", "..", "/a", "../b", "a/b", "1", "80", "50%", "200%", "None", "Always", "In",
    "Exists", "RollingUpdate", "Recreate", "ClusterIP", "LoadBalancer", "ExternalName", "Indexed", "Never", "Pod",
    "Container", "PersistentVolumeClaim", "Localhost", "Resource", "Limited", "Queue", "Opaque", "kubernetes.io/tls",
    "10.0.0.0/8", "1.2.3.4", "::1", "*", "* * * * *", "https://x/y", "a.b.c", "é\u200b", "metadata.labels['a']",
    "cpu", "storage", "hugepages-2Mi", "example.com/x", "1-3,5", "FailIndex", "Complete", "Failed", "Ready",
)  # fmt: skip
_DEEPEST = 16
"""The schema of schemas is recursive."""
_QUANTITIES = ("0", "1", "-1", "500m", "1Gi", "1.5", "3Mi", "1e3", "1n")
_NUMBERS = (0, 1, -1, 2, 5, 80, 600, 65535, 70000, 2**31 - 1, -(2**31))
_TIMES = {"date-time": ("2026-01-01T00:00:00Z", "2025-06-01T12:30:00Z", "2026-01-01T00:00:00.000001Z")}


def anything(name: str, chance: Random) -> dict[str, Any]:
    """Return an object of a definition, with random fields and values."""
    made = _of(definition(name), chance, 0)
    return made if isinstance(made, dict) else {}


def _of(schema: Mapping[str, Any], chance: Random, depth: int) -> Any:
    if "allOf" in schema:
        return _of(schema["allOf"][0], chance, depth)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name.endswith(".Quantity"):
            return chance.choice(_QUANTITIES)
        return _of(definition(name), chance, depth + 1)
    if "oneOf" in schema:
        return chance.choice((chance.choice(_NUMBERS), chance.choice(_WORDS)))
    match schema.get("type"):
        case "string":
            if known := _TIMES.get(schema.get("format", "")):
                return chance.choice(known)
            if "enum" in schema and chance.random() < 0.7:
                return chance.choice(schema["enum"])
            return chance.choice(_WORDS)
        case "integer":
            return chance.choice(_NUMBERS)
        case "number":
            return chance.choice((0.0, 1.5, -2.0))
        case "boolean":
            return chance.random() < 0.5
        case "array":
            several = chance.randrange(3) if depth < _DEEPEST else 0
            return [_of(schema["items"], chance, depth + 1) for _ in range(several)]
        case _:
            return _object(schema, chance, depth)


def _object(schema: Mapping[str, Any], chance: Random, depth: int) -> Any:
    if "properties" in schema:
        likely = max(0.15, 0.7 - depth * 0.06) if depth < _DEEPEST else 0.0
        return {
            field: _of(inner, chance, depth + 1)
            for field, inner in schema["properties"].items()
            if chance.random() < likely
        }
    if "additionalProperties" in schema:
        keys = {chance.choice(_WORDS) for _ in range(chance.randrange(3) if depth < _DEEPEST else 0)}
        return {key: _of(schema["additionalProperties"], chance, depth + 1) for key in sorted(keys)}
    return {}
