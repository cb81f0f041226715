"""What the kinds of this family are, and what each of their fields is for, by the end of its path."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.core.health.probe_schema import described_as

_KINDS: Mapping[str, str] = {
    "ObjectDeployment": "Rolls out its template: every change of the template becomes a revision, as a new set.",
    "ObjectSet": "One revision: it reconciles objects in ordered phases, and reports whether they are available.",
    "ObjectSetPhase": "One phase of a set, for the controller that serves its class.",
    "ObjectSlice": "A part of the objects of a phase, for sets that would otherwise exceed the size limit of objects.",
}
KINDS: Mapping[str, str] = {**_KINDS, **{f"Cluster{kind}": text for kind, text in _KINDS.items()}}

DESCRIPTIONS: Mapping[str, str] = {
    # ObjectSet
    "lifecycleState": "Whether objects are reconciled (Active), only observed (Paused), or deleted for good (Archived).",
    "previous": "Earlier revisions, of which objects may be taken over; those that do not exist are ignored.",
    "previous.name": "The name of the earlier revision, in the same namespace.",
    "previous.kind": "Accepted and ignored: the kind is that of this object.",
    "previous.group": "Accepted and ignored: the group is that of this object.",
    "revision": "The number of the revision; of two revisions the one with the larger number is newer.",
    "phases": "The phases, which are reconciled in order: each starts when the objects before it pass their probes.",
    "phases.name": "The name of the phase, unique within the set.",
    "phases.class": (
        "The class of the controller that reconciles the phase through an ObjectSetPhase; empty means the"
        " controller of the set itself, and default the built-in one."
    ),
    "objects": "The objects, in the order in which they are written.",
    "objects.object": "The manifest of the object, with apiVersion, kind and metadata.name.",
    "collisionProtection": "The collision protection of objects that state none themselves, Prevent if unset.",
    "objects.collisionProtection": (
        "Whether an object that exists already may be taken over: never (Prevent), if it has no controller"
        " (IfNoController), or always (None); unset means what the set states."
    ),
    "conditionMappings": "The conditions of the object that are copied into the status of the set.",
    "sourceType": "The type of the condition of the object.",
    "destinationType": "The type of the condition of the set, with a prefix and a slash.",
    "slices": "The names of slices whose objects follow those of the phase, in order.",
    "availabilityProbes": "What objects have to report before the next phase starts and the set is available.",
    **described_as("availabilityProbes"),
    "successDelaySeconds": "How long the set has to be available before it has succeeded.",
    "progressDeadlineSeconds": (
        "How long the latest revision may take to become available, after which the deployment reports it;"
        " reconciling goes on."
    ),
    # ObjectDeployment
    "spec.selector": "Which sets of the namespace are revisions of this deployment.",
    "template": "What sets are made from.",
    "template.metadata": "Metadata of the sets, of which only the labels are used.",
    "template.metadata.name": "Accepted and ignored.",
    "template.metadata.namespace": "Accepted and ignored.",
    "template.metadata.labels": "The labels of the sets, which the selector has to match.",
    "template.metadata.annotations": "Not copied, but a change of them makes a new revision.",
    "template.metadata.finalizers": "Accepted and ignored.",
    "template.spec": "The spec of the sets.",
    "revisionHistoryLimit": "How many archived revisions are kept.",
    "paused": "Whether objects are only observed; a paused deployment makes, archives and prunes no revisions.",
    # Status
    "status.revision": "The number of the current revision, and of a set that of its spec.",
    "remotePhases": "The ObjectSetPhases of the phases that have a class.",
    "remotePhases.name": "The name of the ObjectSetPhase.",
    "remotePhases.uid": "The UID of the ObjectSetPhase.",
    "controllerOf": "The objects whose controller this object is.",
    "controllerOf.kind": "The kind of the object.",
    "controllerOf.group": "The API group of the object, empty for core.",
    "controllerOf.name": "The name of the object.",
    "controllerOf.namespace": "The namespace of the object, unset where it has none.",
    "controllerOf.version": "Always empty: the version of an object is not recorded.",
    "collisionCount": "How often a set with the hash of another template was found; a part of the hash.",
    "templateHash": "The hash of the current template.",
}
