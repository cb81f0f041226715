"""
The examples in kro's Go module: definitions, instances, and the kinds of their children.

A definition is named by its file. Files that name their parameters as `$NAME` get the
name itself as the value. Definitions without an instance beside them get one from
`MORE_INSTANCES`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tests.bed.kro import kro_module, module_folder
from tests.conformance.kro.corpus import FROM_CRDS, GENERATED, NEWER, Examples, Manifest, nodes, template_of

GATEWAY = "sigs.k8s.io/gateway-api@v1.4.1"
_PARAMETER = re.compile(r"\$\{?([A-Z][A-Z_]+)\}?")
_BUILT_IN = re.compile(r"(?!gateway)[a-z]*(?:\.[a-z.]*k8s\.io)?$")
_CLUSTERED = ("IAMRoleSelector",)
"""The kinds of stand-ins that are cluster-scoped."""

_OLDER = "eks.services.k8s.aws"
"""Of this group the examples have CRDs that are older than what other examples use of them."""

_EKS = "aws/eks-cluster-mgmt/charts/kro/resource-groups/eks/rg-eks.yaml"
MORE_INSTANCES: dict[str, Manifest] = {
    "aws/cachecluster/simple-cachecluster.yaml": {"name": "simple", "subnetIDs": ["subnet-1", "subnet-2"]},
    _EKS: {"name": "eks", "accountId": "123456789012", "managementAccountId": "210987654321"},
    "gcp/cloud-sql/rgd.yaml": {
        "name": "sql", "project": "example", "primaryRegion": "us-central1", "replicaRegion": "us-west1",
    },
    "gcp/eventarc/rgd.yaml": {
        "name": "eventarc", "workflowName": "flow", "location": "us-central1", "project": "example",
    },
    "gcp/gke-cluster/rgd.yaml": {"name": "gke", "nodepool": "pool", "maxnodes": 4, "location": "us-central1"},
}  # fmt: skip
"""The specs of instances that the examples do not have, by the definition."""


def _core_dns(instance: Manifest) -> None:
    # The default is an address that is in no range of either server.
    instance["spec"]["values"]["service"] = {"clusterIP": "None", "clusterIPs": ["None"]}


EDITS = {"kubernetes/core-dns/coredns-instance.yaml": _core_dns}


def definitions() -> dict[str, Manifest]:
    """Return the definitions by their file; files that are not YAML are left out."""
    return {
        path: document
        for path, document in _documents()
        if document.get("kind") == "ResourceGraphDefinition" and document["apiVersion"] == "kro.run/v1alpha1"
    }


def instances(of: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Return the instances by their file."""
    kinds = {one["spec"]["schema"]["kind"] for one in of.values()}
    found = {
        path: one for path, one in _documents() if one["kind"] in kinds and not path.startswith("graph/")
    }
    for path, edit in EDITS.items():
        edit(found[path])
    crds = {path: {"name": "crds"} for path in of if path.startswith(FROM_CRDS)}
    for path, spec in (MORE_INSTANCES | crds).items():
        kind = of[path]["spec"]["schema"]["kind"]
        made = {
            "apiVersion": "kro.run/v1alpha1",
            "kind": kind,
            "metadata": {"name": spec["name"], "namespace": spec["name"]},
            "spec": spec,
        }
        found[f"{path}#instance"] = made
    for path, one in found.items():
        own = re.sub(r"[^a-z0-9]+", "-", path.removesuffix(".yaml").lower())
        one["metadata"].setdefault("namespace", own)
    return found


def kinds(of: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """
    Return CRDs of the children's kinds that are neither built in nor generated, by a name for each.

    They come from the examples that have CRDs as templates, from the module of the Gateway
    API, or are stand-ins that accept any content: the modules of the others are not public.
    """
    known: dict[str, Manifest] = {
        _kind_of(node["template"]): {"from": [path, node["id"]]}
        for path, one in of.items()
        for node in one["spec"].get("resources") or ()
        if path.startswith(FROM_CRDS)
    }
    known |= {_kind_of(crd): {"crd": _bare(crd)} for crd in _gateway()}
    found: dict[str, Manifest] = {}
    for one in of.values():
        for node in one["spec"].get("resources") or ():
            template = node.get("template") or node.get("externalRef")
            group, _, version = template["apiVersion"].rpartition("/")
            if group == GENERATED or _BUILT_IN.match(group):
                continue
            named = f"{template['kind']}.{group}"
            found[named] = known.get(named) or _stood_in(found.get(named), group, version, template["kind"])
            if group == _OLDER:
                found[f"{named} {NEWER}"] = _stood_in(None, group, version, template["kind"])
    return found


def _stood_in(before: Manifest | None, group: str, version: str, kind: str) -> Manifest:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    assert before is None or before["crd"]["spec"]["versions"][0]["name"] == version
    spec = {
        "group": group,
        "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
        "scope": "Cluster" if kind in _CLUSTERED else "Namespaced",
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }
        ],
    }
    return {"crd": _crd(f"{plural}.{group}", spec), "is_stand_in": True}


def _crd(name: str, spec: Manifest, annotations: Manifest | None = None) -> Manifest:
    metadata: Manifest = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _kind_of(crd: Manifest) -> str:
    return f"{crd['spec']['names']['kind']}.{crd['spec']['group']}"


def _bare(crd: Manifest) -> Manifest:
    annotations = {
        k: v for k, v in crd["metadata"].get("annotations", {}).items() if k.startswith("api-approved")
    }
    return _crd(crd["metadata"]["name"], _undescribed(crd["spec"]), annotations)


def _gateway() -> Iterator[Manifest]:
    for path in (module_folder(GATEWAY) / "config" / "crd" / "standard").glob("*httproutes.yaml"):
        yield yaml.safe_load(path.read_text())


def _documents() -> Iterator[tuple[str, Manifest]]:
    root = kro_module() / "examples"
    for file in sorted(root.rglob("*.yaml")):
        path = str(file.relative_to(root))
        text = file.read_text()
        if re.search(r"instance.*template|tmpl", file.name):
            text = _PARAMETER.sub(lambda found: found[1].lower().replace("_", "-"), text)
        try:
            documents = [one for one in yaml.safe_load_all(text) if isinstance(one, dict) and "kind" in one]
        except yaml.YAMLError:
            continue
        if len(documents) == 1:
            [one] = documents
            one["metadata"].pop("namespace" if one["kind"] == "ResourceGraphDefinition" else "", None)
            yield path, _undescribed(one) if path.startswith(FROM_CRDS) else one


def _undescribed(value: Any) -> Any:
    """Return a schema without descriptions: they are most of its size."""
    if isinstance(value, Mapping):
        return {
            k: _undescribed(v) for k, v in value.items() if not (k == "description" and isinstance(v, str))
        }
    return [_undescribed(one) for one in value] if isinstance(value, list) else value


# ── statuses that no controller of this test writes ──


def statuses(of: Mapping[str, Manifest], kinds: Mapping[str, Manifest]) -> dict[str, dict[str, Manifest]]:
    """
    Return for each definition the statuses of its nodes, so that what depends on them is made.

    A status has the fields that expressions of the definition read, each with a value of
    its type, or text.
    """
    return {
        path: found
        for path, one in of.items()
        if not path.startswith(FROM_CRDS) and (found := _statuses(path, one, of, kinds))
    }


_TRUE = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Synced", "message": ""}
_BUILT_IN_STATUS: Mapping[str, Manifest] = {
    "Deployment": {"conditions": [{"type": "Available", **_TRUE, "lastUpdateTime": "2026-01-01T00:00:00Z"}]},
    "Ingress": {"loadBalancer": {"ingress": [{"hostname": "ingress.example.com"}]}},
    "Job": {
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:01:00Z",
        "succeeded": 1,
        "conditions": [{"type": "SuccessCriteriaMet", **_TRUE}, {"type": "Complete", **_TRUE}],
    },
}  # fmt: skip


def _statuses(
    path: str, one: Manifest, of: Mapping[str, Manifest], kinds: Mapping[str, Manifest]
) -> dict[str, Manifest]:
    found: dict[str, Manifest] = {}
    text = json.dumps(one).replace('\\"', "'")
    for node in one["spec"].get("resources") or ():
        template = node.get("template") or node.get("externalRef")
        group = template["apiVersion"].rpartition("/")[0]
        if group == GENERATED:
            continue
        if _BUILT_IN.match(group):
            status = dict(_BUILT_IN_STATUS.get(template["kind"]) or {})
        else:
            schema = _status_schema(kinds[f"{template['kind']}.{group}"], of)
            status = _completed(_status(node["id"], text, schema), schema)
        if status:
            found[node["id"]] = status
    return found


def _status(node: str, text: str, schema: Manifest) -> Manifest:
    status: Manifest = {}
    names = {node} | {found[1] for found in re.finditer(rf"\b{node}\.map\((\w+),", text)}
    for name in sorted(names):
        for found in re.finditer(rf"\b{name}\.status\.([\w.\[\]]+)(\()?(?:\s*==\s*'(\w+)')?", text):
            parts = re.findall(r"\w+|\[0\]", found[1])
            if found[2]:
                parts = parts[:-1]
            if parts and parts[0] != "conditions":
                _put(status, parts, schema, found[3] or "", f"{node}-{parts[-1]}")
    if re.search(rf"\b{node}\.status\.conditions", text):
        status["conditions"] = [{"type": name, **_TRUE} for name in ("ACK.ResourceSynced", "Ready")]
    return status


def _completed(value: Any, schema: Manifest) -> Any:
    """Return a value with the fields that its schema requires."""
    if isinstance(value, list):
        return [_completed(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    below = schema.get("properties") or {}
    missing = {one: _value(one, below.get(one, {}), "", one) for one in schema.get("required", ())}
    return {one: _completed(of, below.get(one, {})) for one, of in (missing | value).items()}


def _put(into: Manifest, parts: Sequence[str], schema: Manifest, literal: str, text: str) -> None:
    [first, *rest] = parts
    below = (schema.get("properties") or {}).get(first, {})
    if rest and rest[0] == "[0]":
        items = into.setdefault(first, [{}])
        if len(rest) > 1:
            _put(items[0], rest[1:], below.get("items", {}), literal, text)
    elif rest:
        if not isinstance(into.get(first, {}), dict):
            into[first] = {}
        _put(into.setdefault(first, {}), rest, below, literal, text)
    elif first not in into or literal:
        into[first] = _value(first, below, literal, text)


def _value(field: str, schema: Manifest, literal: str, text: str) -> Any:
    match schema.get("type"):
        case "integer":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case "object" if "properties" in schema:
            return {}
    if field == "ackResourceMetadata":
        return {"ownerAccountID": "123456789012", "region": "us-west-2", "arn": f"arn:{text}"}
    if field == "endpoint" and not schema:
        return {"address": f"{text}.example.com"}
    return literal or text


def _status_schema(kind: Manifest, of: Mapping[str, Manifest]) -> Manifest:
    path, id = kind.get("from") or ("", "")
    crd = template_of(path, id, of) if path else kind["crd"]
    schema: Manifest = (
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("status") or {}
    )
    return schema


def examples() -> Examples:
    """Return all examples."""
    found = definitions()
    named = kinds(found)
    written = statuses(found, named)
    for path, below in written.items():
        for id, template in nodes(found[path]):
            known = f"{template['kind']}.{template['apiVersion'].rpartition('/')[0]}"
            for kind in (named.get(known, {}), named.get(f"{known} {NEWER}", {})):
                if "is_stand_in" in kind and id in below:
                    root = kind["crd"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
                    # kro cannot read fields of a status without a type.
                    root["status"] = _typed(below[id], root["status"])
    return Examples(definitions=found, instances=instances(found), kinds=named, statuses=written)


def _typed(value: Any, known: Manifest) -> Manifest:
    """Return the schema of a value, with what else is known of it."""
    match value:
        case dict():
            before = known.get("properties", {})
            below = {name: _typed(one, before.get(name, {})) for name, one in value.items()}
            return {"type": "object", "properties": before | below}
        case list():
            return {"type": "array", "items": _typed(value[0], {}) if value else {"type": "string"}}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
    return {"type": "string"}
