"""What the kinds of this family are, and what each of their fields is for, by the end of its path."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "ResourceGraphDefinition": (
        "Defines a kind, and the graph of resources that each of its instances consists of."
    ),
    "ResourceGraphDefinitionRevision": (
        "One revision of a ResourceGraphDefinition: an immutable copy of its schema and its resources."
    ),
    "ResourceGraphInputRevision": (
        "One revision of an instance: its spec, and the revision of the definition that it was rendered with."
    ),
}

DESCRIPTIONS: Mapping[str, str] = {
    # ResourceGraphDefinition
    "spec.schema": "The kind that is generated, and the fields of its instances.",
    "schema.kind": "The name of the kind, in CamelCase.",
    "schema.apiVersion": "The version of the kind, without its group.",
    "schema.group": "The API group of the kind.",
    "schema.scope": "Whether instances are in a namespace (Namespaced) or not (Cluster).",
    "schema.spec": "The fields of the spec of instances, as SimpleSchema: a type, and markers after one `|`.",
    "schema.types": "Types that the fields of the spec may name, as SimpleSchema.",
    "schema.status": (
        "The fields of the status of instances, whose values are expressions; the key conditions has expressions"
        " that result in conditions."
    ),
    "additionalPrinterColumns": "The columns of the kind; they replace State, Ready and Age.",
    "additionalPrinterColumns.name": "The heading of the column.",
    "additionalPrinterColumns.type": "The OpenAPI type of the values.",
    "additionalPrinterColumns.jsonPath": "The path of the value in an instance.",
    "additionalPrinterColumns.description": "What the column shows.",
    "additionalPrinterColumns.format": "The OpenAPI format of the values.",
    "additionalPrinterColumns.priority": "Zero for a column that is always shown, and more for the wide output.",
    "shortNames": "Short names of the kind.",
    "categories": "The categories that the kind is in; a category lists the objects of all its kinds.",
    "schema.metadata": "Metadata of the generated CustomResourceDefinition, not of instances.",
    "schema.metadata.labels": "The labels of the generated CustomResourceDefinition.",
    "schema.metadata.annotations": "The annotations of the generated CustomResourceDefinition.",
    "resources": "The nodes of the graph, in any order.",
    "resources.id": "The identifier of the node, by which expressions name it.",
    "template": "The manifest of the resource; its values may contain expressions in `${}`.",
    "externalRef": "An existing object, or existing objects, that are read and never written.",
    "externalRef.apiVersion": "The API version of the external object.",
    "externalRef.kind": "The kind of the external object.",
    "externalRef.metadata": "Which objects: by name, or by a selector.",
    "externalRef.metadata.name": "The name of the object.",
    "externalRef.metadata.namespace": (
        "The namespace of the object, by default that of the instance; with a selector, empty means all."
    ),
    "externalRef.metadata.selector": "A label selector, or an expression that results in one.",
    "readyWhen": "Expressions that all have to be true for the resource to be ready; without any, it is once it exists.",
    "includeWhen": "Expressions that all have to be true for the resource to be created, and to be kept.",
    "resources.propagateWhen": "Expressions that all have to be true for the resource to be created or changed.",
    "forEach": "Variables and lists: the resource is made for each combination of their elements.",
    "spec.propagateWhen": (
        "Expressions that all have to be true for an instance to move to a new revision of this definition;"
        " without any, all instances move at once."
    ),
    "revisionManagement": "Which revisions are kept, and when a change becomes one.",
    "historyLimit": "How many revisions before the current one are kept, 10 if unset; those in use always are.",
    "updatePolicy": "When a change of the schema or the resources becomes a revision.",
    "updatePolicy.type": (
        "At once (Automatic), or once the annotation kro.run/create-revision approves it (Manual)."
    ),
    # Its status
    "state": "Active where instances are served from the schema and the resources as they are now, else Inactive.",
    "status.topologicalOrder": "The ids of the nodes, in the order in which they are created.",
    "status.resources": "The nodes that depend on others.",
    "dependencies": "The nodes that it depends on.",
    "dependencies.id": "The id of the node.",
    "observedGeneration": "The metadata.generation that the status is about.",
    "lastIssuedRevision": "The highest number that a revision has had, so that no number is used twice.",
    "currentRevision": "The number of the revision that instances follow.",
    "currentRevisionName": "The name of the revision that instances follow.",
    "currentRevisionHash": "The hash of the content of that revision.",
    "revisionHistory": "The revisions that are kept, newest first.",
    "revisionHistory.revision": "The number of the revision.",
    "createdAt": "When the revision was created.",
    "revisionHistory.current": "Whether it is the current one.",
    "instanceCount": "How many instances are on the revision.",
    # ResourceGraphDefinitionRevision
    "spec.revision": "The number of the revision; of two revisions the one with the larger number is newer.",
    "specHash": "The hash of the content; equal content has equal hashes.",
    "superseded": "Whether there is a newer revision.",
    "admitted": "The uids of instances that may move to this revision and are not on it yet.",
    # ResourceGraphInputRevision
    "inputRevision": "The number of the revision, counted for each instance.",
    "rgdRevision": "The number of the revision of the definition.",
    "rgdRevisionRef": "The ResourceGraphDefinitionRevision of that number.",
    "rgdRevisionRef.name": "Its name.",
    "rgdRevisionRef.specHash": "The hash of its content, which differs from that of a later revision of the same number.",
    "instanceSpec": "A copy of the spec of the instance.",
    "propagationStatus": "Whether the resources of the instance are at this revision.",
    "resourcesAtRevision": "How many resources are at this revision.",
    "totalResources": "How many resources there are in this revision.",
}
