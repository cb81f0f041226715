"""
What differs on purpose between kro and ours, and every other difference.

kro has no revisions: what ours writes about them is left out before the comparison. Each
entry of `KNOWN` is a difference in what both write, with the reason.
"""

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from lamina.families.resourcegraph.labels import (
    INPUT_REVISION_STAMP,
    INSTANCE_NAME,
    INSTANCE_NAMESPACE,
    PARENT_INPUT_REVISION,
    PARENT_RGD_REVISION,
    RESOURCE_ID,
    RGD_REVISION,
)
from tests.conformance.kro.corpus import Manifest

STAMPS = (
    RGD_REVISION, INPUT_REVISION_STAMP, INSTANCE_NAME, INSTANCE_NAMESPACE, RESOURCE_ID, PARENT_RGD_REVISION,
    PARENT_INPUT_REVISION,
)  # fmt: skip
"""The annotations of ours on children, and on generated kinds."""
STATUS = (
    "currentInputRevision", "currentRGDRevision", "observedInputRevision", "observedRGDRevision", "propagation",
    "inputRevisionHistory", "managedResources",
)  # fmt: skip
"""The status fields of ours, in instances and in the schemas of generated kinds."""
CONDITIONS = ("RevisionResolved", "ResourcesPropagated", "RollbackSucceeded", "RevisionCurrent", "Propagated")
"""The conditions of ours, on definitions and on instances."""
THEIR_CONDITIONS = ("GraphRevisionsResolved",)

KNOWN: Mapping[str, str] = {
    r"/additionalPrinterColumns\[\d\]/description: ": "the default columns are described in our words",
    r"^/AzureToDoDeployment .*/annotations/(applyset.kubernetes.io/contains-group-kinds|internal.kro.run/applyset-inventory-hash): ": (
        "ours lists the kinds of all resources before the first is applied, so that it is written once; "
        "kro only those of resources that could be rendered, and one of this example waits for ever"
    ),
}
"""The reason of each difference, by a pattern of its path."""

FRAGMENTS: Mapping[str, str] = {
    **{
        f"aws/ack-controller/controllers/{name}-controller.yaml": "marker key 'roleforACK"
        for name in ("ec2", "ecr", "ecr-public", "eks", "s3", "sqs")
    },
    "apigateway/vpc-lattice/rg-webservice.yaml": (
        "error getting field schema for path spec.gatewayClassName: schema not found for field gatewayClassName"
    ),
    "aws/ack-controller/controllers/iam-controller.yaml": "log.enabled",
    "aws/ack-eks-cluster/eks-reused.yaml": "references unknown identifiers: [spc]",
    "aws/ack-controller/resourcegroup.yaml": "marker key 'roleforACK",
    "aws/ingress-triangle/application.yaml": "failed to get schema for resource ingresstriangle",
    "aws/ingress-triangle/ingress-triangle.yaml": "found no matching overload for '_?_:_' applied to '(bo",
    "aws/llm/llm.yaml": 'returns type "bool" but expected "string": type kind mismatch',
    "aws/webstack/rg.yaml": (
        "error getting field schema for path spec.s3bucketName: schema not found for field s3bucketName"
    ),
}
"""What the messages of both say about a definition that is refused; other words of them differ."""


def comparable(shown: Manifest) -> Manifest:
    """Return what was made without what only ours, or only kro, writes."""
    return {
        name: _definition(one) if "children" not in one else _instance(one) for name, one in shown.items()
    }


def _definition(one: Manifest) -> Manifest:
    if "conditions" not in one:
        return one
    made = {**one, "conditions": _without(one["conditions"], (*CONDITIONS, *THEIR_CONDITIONS))}
    # kro lists dependencies as it finds them in the expressions, ours sorted.
    made["resources"] = [
        {**node, "dependencies": sorted(node["dependencies"], key=itemgetter("id"))}
        for node in made["resources"]
    ]
    made.pop("refused", None)
    if crd := made.get("crd"):
        made["crd"] = {
            **crd,
            "annotations": _without(crd["annotations"], STAMPS),
            "versions": [_version(one) for one in crd["versions"]],
        }
    return made


def _version(version: Manifest) -> Manifest:
    root = version["schema"]["openAPIV3Schema"]
    properties = dict(root["properties"])
    if status := properties.get("status"):
        properties["status"] = {**status, "properties": _without(status["properties"], STATUS)}
    return {**version, "schema": {"openAPIV3Schema": {**root, "properties": properties}}}


def _instance(one: Manifest) -> Manifest:
    return {
        **one,
        "annotations": _without(one["annotations"], STAMPS),
        "conditions": _without(one["conditions"], CONDITIONS),
        "status": _without(one["status"], STATUS),
        "children": {name: _child(child) for name, child in one["children"].items()},
    }


def _child(child: Manifest) -> Manifest:
    metadata = child["metadata"]
    annotations = _without(metadata.get("annotations") or {}, STAMPS)
    return {**child, "metadata": {**metadata, "annotations": annotations}}


def _without(some: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in some.items() if name not in names}


def differences(ours: Manifest, theirs: Manifest) -> list[str]:
    """Return every difference that is not known, with its path."""
    return [
        line for line in all_differences(ours, theirs) if not any(re.search(known, line) for known in KNOWN)
    ]


def all_differences(ours: Manifest, theirs: Manifest) -> list[str]:
    """Return every difference, with its path."""
    found = [*_differences("", comparable(ours), comparable(theirs))]
    for path, fragment in FRAGMENTS.items():
        if path in theirs:
            for whose, shown in (("ours", ours), ("kro", theirs)):
                if fragment not in shown.get(path, {}).get("refused", ""):
                    found.append(f"{path}: {whose} does not say {fragment!r}")
    return found


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in theirs:
                yield f"{path}/{name}: only ours: {str(ours[name])[:200]}"
            elif name not in ours:
                yield f"{path}/{name}: only kro: {str(theirs[name])[:200]}"
            else:
                yield from _differences(f"{path}/{name}", ours[name], theirs[name])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif ours != theirs:
        yield f"{path}: ours {str(ours)[:200]}, kro {str(theirs)[:200]}"
