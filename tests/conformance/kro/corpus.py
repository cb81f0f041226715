"""
The recorded examples, and what kro made of them: one line of JSON for each.

Some examples define the same kind, or have the same name: they are applied in rounds, each
on a new server. The examples whose children are CRDs have a round of their own, because
the others have those CRDs from the start. In the second round stand-ins replace those that
are older than its examples.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]

EXAMPLES = Path(__file__).with_name("examples.jsonl")
RECORDED = Path(__file__).with_name("recorded.jsonl")
FROM_CRDS = "aws/ack-controller/crds/"
"""The examples whose children are CRDs."""
GENERATED = "kro.run"
"""The API group of the generated kinds."""
OF_CRDS, NEWER = "definitions", "second"
ROUNDS: Mapping[str, tuple[str, ...]] = {
    NEWER: (
        "apigateway/",
        "aws/cachecluster/simple-cachecluster.yaml",
        "aws/eks-cluster-mgmt/",
        "kubernetes/defaults/",
    ),
    "controllers": ("aws/ack-controller/",),
    OF_CRDS: (FROM_CRDS, "aws/ack-eks-cluster/eks-reused.yaml"),
}
"""The examples of each round, by the start of their path; all others are in the first."""
FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Manifests by their file, the CRDs that they need, and the status of each node that no controller here writes."""

    definitions: Mapping[str, Manifest]
    instances: Mapping[str, Manifest]
    kinds: Mapping[str, Manifest]
    statuses: Mapping[str, Mapping[str, Manifest]]

    def of(self, chosen: str) -> "Examples":
        """Return the examples of one round."""
        definitions = {path: one for path, one in self.definitions.items() if is_in(path, chosen)}
        generated = {one["spec"]["schema"]["kind"] for one in definitions.values()}
        # Instances are in the round of their definition: most are in one folder with it.
        instances = {
            path: one
            for path, one in self.instances.items()
            if one["kind"] in generated and is_in(path, chosen)
        }
        children = {
            f"{template['kind']}.{template['apiVersion'].rpartition('/')[0]}"
            for one in definitions.values()
            for _, template in nodes(one)
        }
        kinds = {
            name: {"crd": self._crd(self.kinds.get(f"{name} {NEWER}", one) if chosen == NEWER else one)}
            for name, one in self.kinds.items()
            if name in children and (chosen != OF_CRDS or "from" not in one)
        }
        statuses = {path: one for path, one in self.statuses.items() if path in definitions}
        return Examples(definitions=definitions, instances=instances, kinds=kinds, statuses=statuses)

    def _crd(self, kind: Manifest) -> Manifest:
        if "crd" in kind:
            return dict(kind["crd"])
        path, id = kind["from"]
        return template_of(path, id, self.definitions)


def is_in(path: str, chosen: str) -> bool:
    """Say whether an example is in a round."""
    if chosen == FIRST:
        return not any(path.startswith(those) for those in ROUNDS.values())
    return path.startswith(ROUNDS[chosen])


def nodes(definition: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield the id and the template of each resource, or its reference to an external object."""
    for one in definition["spec"].get("resources") or ():
        yield one["id"], one.get("template") or one.get("externalRef") or {}


def template_of(path: str, id: str, definitions: Mapping[str, Manifest]) -> Manifest:
    """Return the template of a resource."""
    return dict(nodes(definitions[path]))[id]


# ── files ──

_PARTS = ("definitions", "instances", "kinds", "statuses")


def read_examples() -> Examples:
    """Return the recorded examples."""
    return Examples(**_read(EXAMPLES, _PARTS))


def write_examples(examples: Examples) -> None:
    """Record the examples."""
    _write(EXAMPLES, {part: getattr(examples, part) for part in _PARTS})


def read_recorded() -> Mapping[str, Manifest]:
    """Return what kro made of the examples, by round."""
    return _read(RECORDED, (FIRST, *ROUNDS))


def write_recorded(recorded: Mapping[str, Mapping[str, Manifest]]) -> None:
    """Record what kro made of the examples."""
    _write(RECORDED, recorded)


def _read(path: Path, parts: Iterable[str]) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for line in path.read_text().splitlines():
        part, name, value = json.loads(line)
        found[part][name] = value
    return found


def _write(path: Path, parts: Mapping[str, Mapping[str, Any]]) -> None:
    rows = [[part, name, value] for part, those in parts.items() for name, value in sorted(those.items())]
    lines = (json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n" for row in rows)
    path.write_text("".join(lines))
