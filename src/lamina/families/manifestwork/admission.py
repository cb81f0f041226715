"""
Admission checks of works, replica sets and placements: refusals and warnings.

They check what no schema can: that manifests are too large together or name an object
twice, that the user may not use an executor, and that a setting has no effect.

A write that leaves the spec as it is passes: an object that was admitted under another
limit can still lose its finalizers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from lamina.core.admission import (
    ALLOWED,
    AccessCheck,
    AdmissionCheck,
    AdmissionRequest,
    AdmissionResponse,
    FailurePolicy,
)
from lamina.families.manifestwork.hub.revision import template_of
from lamina.families.manifestwork.labels import (
    CLUSTER_GROUP,
    MANIFEST_LIMIT,
    OWNER,
    PLACEMENT,
    REPLICA_SET,
    WORK,
    WORK_GROUP,
    owner_key,
)
from lamina.objects import meta
from lamina.objects.types import Made, Obj

CONFIGURATION = "lamina-manifestwork"
"""The ValidatingWebhookConfiguration of the checks."""
_LONGEST_LABEL = 63
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_IGNORED = ("spreadPolicy", "sortBy", "scoreRateLimit")
"""The fields of a placement that have no effect."""
_CHANGED = "oldObject == null || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"
_EXECUTED = f"has(object.spec) && has(object.spec.executor) && ({_CHANGED})"
_OURS = f"request.kind.kind == 'ManifestWork' && has(object.metadata.labels) && '{OWNER}' in object.metadata.labels"


def checks(
    limit: int = MANIFEST_LIMIT, *, schedules: bool = True, replica_sets: bool = True
) -> tuple[AdmissionCheck, ...]:
    """Return the checks, given how many bytes of manifests a work may have."""
    works = (
        AdmissionCheck(
            name=f"manifests.{WORK_GROUP}",
            configuration=CONFIGURATION,
            path="/manifestwork/manifests",
            rules=(
                _rule(WORK_GROUP, "manifestworks", ["v1"]),
                _rule(WORK_GROUP, "manifestworkreplicasets", ["v1alpha1", "v1"]),
            ),
            judge=partial(judge_manifests, limit=limit),
            conditions=({"name": "spec-changes", "expression": _CHANGED},),
            # The works of a replica set were checked with its template.
            ours=_OURS,
        ),
        AdmissionCheck(
            name=f"executors.{WORK_GROUP}",
            configuration=CONFIGURATION,
            path="/manifestwork/executors",
            rules=(_rule(WORK_GROUP, "manifestworks", ["v1"]),),
            judge=judge_executor,
            # It guards rights, so a write is refused while the webhook does not answer.
            absence=FailurePolicy.REFUSES,
            conditions=({"name": "has-executor", "expression": _EXECUTED},),
        ),
    )
    placements = AdmissionCheck(
        name=f"placements.{CLUSTER_GROUP}",
        configuration=CONFIGURATION,
        path="/manifestwork/placements",
        rules=(_rule(CLUSTER_GROUP, "placements", ["v1beta1"]),),
        judge=judge_placement,
    )
    disabled = AdmissionCheck(
        name=f"replicasets.{WORK_GROUP}",
        configuration=CONFIGURATION,
        path="/manifestwork/replicasets",
        rules=(_rule(WORK_GROUP, "manifestworkreplicasets", ["v1alpha1", "v1"], "DELETE"),),
        judge=refuse_replica_set,
    )
    # Another scheduler may use the fields that ours ignores.
    return (*works, *((placements,) if schedules else ()), *(() if replica_sets else (disabled,)))


def refuse_replica_set(attempt: AdmissionRequest) -> AdmissionResponse:
    """Refuse any write of a replica set, where no controller rolls it out."""
    if attempt.kind != REPLICA_SET:
        return ALLOWED
    return AdmissionResponse(refusal="ManifestWorkReplicaSet feature is disabled")


def _rule(group: str, plural: str, versions: list[str], *more: str) -> Made:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": ["CREATE", "UPDATE", *more],
        "resources": [plural],
        "scope": "Namespaced",
    }


def _keeps_spec(attempt: AdmissionRequest) -> bool:
    """Say whether a write leaves the spec as it is."""
    return bool(attempt.old) and attempt.new.get("spec") == attempt.old.get("spec")


# Manifests


def judge_manifests(attempt: AdmissionRequest, limit: int = MANIFEST_LIMIT) -> AdmissionResponse:
    """Check the manifests of a work, or those in the template of a replica set."""
    if attempt.kind not in (WORK, REPLICA_SET) or _keeps_spec(attempt):
        return ALLOWED
    is_set = attempt.kind == REPLICA_SET
    new = template_of(attempt.new) if is_set else attempt.new.get("spec") or {}
    old = template_of(attempt.old) if is_set else attempt.old.get("spec") or {}
    manifests = _manifests(new)
    if not attempt.old or manifests != _manifests(old):
        refusal = next(_errors(manifests, limit), "")
        if refusal:
            return AdmissionResponse(refusal=refusal)
    return AdmissionResponse(warnings=tuple(_warnings(attempt.new, manifests)) if is_set else ())


def _manifests(template: Obj) -> Sequence[Any]:
    return (template.get("workload") or {}).get("manifests") or ()


def _errors(manifests: Sequence[Any], limit: int) -> Iterator[str]:
    """Yield what is wrong with manifests, in the words of upstream."""
    if not manifests:
        yield "Workload manifests should not be empty"
    size = sum(len(orjson.dumps(one)) for one in manifests)
    if size > limit:
        yield f"the size of manifests is {size} bytes which exceeds the {limit} limit"
    seen: set[tuple[str, ...]] = set()
    for one in manifests:
        if not isinstance(one, Mapping) or not isinstance(one.get("metadata") or {}, Mapping):
            yield f"a manifest has to be an object, and {_shown(one)} is none"
            continue
        if not one.get("kind"):
            yield f"Object 'Kind' is missing in '{_shown(one)}'"
        if not one.get("apiVersion"):
            yield f"Object 'apiVersion' is missing in '{_shown(one)}'"
        metadata = one.get("metadata") or {}
        if not metadata.get("name"):
            yield "name must be set in manifest"
        if metadata.get("generateName"):
            yield "generateName must not be set in manifest"
        named = (one.get("apiVersion"), one.get("kind"), metadata.get("namespace"), metadata.get("name"))
        version, kind, namespace, name = (str(part or "") for part in named)
        if (version, kind, namespace, name) in seen:
            yield f"duplicate manifest for resource {namespace}/{name} with resource type {version}.{kind}"
        seen.add((version, kind, namespace, name))


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()[:256]


# Settings of a replica set without effect


def _warnings(obj: Obj, manifests: Sequence[Any]) -> Iterator[str]:
    refs = (obj.get("spec") or {}).get("placementRefs") or ()
    strategies = [one.get("rolloutStrategy") or {} for one in refs]
    for place, strategy in enumerate(strategies):
        if strategy.get("failureStrategy") == "AbortAll" and not _has_deadline(strategy):
            yield (
                f"spec.placementRefs[{place}].rolloutStrategy: failureStrategy AbortAll does nothing while "
                "progressDeadline is None: no cluster is ever late, and nothing is aborted"
            )
        if strategy.get("type") == "Progressive" and _is_none(strategy):
            yield (
                f"spec.placementRefs[{place}].rolloutStrategy.progressive.maxConcurrency: "
                f"{strategy['progressive']['maxConcurrency']} does not stop a rollout: "
                "all clusters get the change at once"
            )
    for place in _with_rollout_type(obj):
        yield (
            f"spec.placementRefs[{place}].rolloutStrategy.rolloutType is no field and is dropped: "
            "the field is called type, and without it all clusters get the change at once"
        )
    defined = [meta.name(one) for one in manifests if one.get("kind") == "CustomResourceDefinition"]
    if defined and any(one.get("failureStrategy") == "AbortAll" for one in strategies):
        yield (
            f"the template holds the CustomResourceDefinition {defined[0]}, and failureStrategy is AbortAll: "
            "an abort that removes a definition deletes every object of its kind"
        )
    key = owner_key(meta.namespace(obj), meta.name(obj))
    if len(key) > _LONGEST_LABEL:
        yield (
            f'works are found by the label "{key}", which has {len(key)} characters, {_LONGEST_LABEL} at most: '
            "no work will be made"
        )


def _has_deadline(strategy: Obj) -> bool:
    kind = str(strategy.get("type") or "All")
    block = strategy.get(kind[:1].lower() + kind[1:]) or {}
    return block.get("progressDeadline") not in (None, "", "None")


def _is_none(strategy: Obj) -> bool:
    """Say whether maxConcurrency is zero, which counts as unset."""
    wanted = (strategy.get("progressive") or {}).get("maxConcurrency")
    return wanted is not None and str(wanted).removesuffix("%").strip("0") == ""


def _with_rollout_type(obj: Obj) -> Iterator[int]:
    """Yield the placements with a rolloutType: the server drops it before admission, and kubectl's annotation keeps it."""
    try:
        written = orjson.loads(meta.annotations(obj).get(_LAST_APPLIED) or b"{}")
        for place, one in enumerate((written.get("spec") or {}).get("placementRefs") or ()):
            if "rolloutType" in (one.get("rolloutStrategy") or {}):
                yield place
    except (ValueError, AttributeError, TypeError):
        # The annotation may hold anything, and this is only a warning.
        return


# Executors


def judge_executor(attempt: AdmissionRequest) -> AdmissionResponse:
    """
    Check whether the user may use the executor of a work.

    Checked whenever the spec changes, and not only its executor: a user without that right
    may not change what the executor applies either.
    """
    executor = _map(attempt.new.get("spec")).get("executor")
    if attempt.kind != WORK or not executor or _keeps_spec(attempt):
        return ALLOWED
    account = _map(_map(_map(executor).get("subject")).get("serviceAccount"))
    if not account:
        return AdmissionResponse(refusal="executor service account can not be nil")
    namespace, name = account.get("namespace") or "", account.get("name") or ""
    return AdmissionResponse(
        leave=AccessCheck(
            attributes={
                "group": WORK_GROUP,
                "resource": "manifestworks",
                "verb": "execute-as",
                "namespace": attempt.namespace,
                "name": f"system:serviceaccount:{namespace}:{name}",
            },
            refusal=(
                f"user {attempt.user.get('username')} cannot manipulate the Manifestwork "
                f"with executor {namespace}/{name} in namespace {attempt.namespace}"
            ),
        )
    )


def _map(value: object) -> Obj:
    """Return a value if it is a map, and an empty map otherwise."""
    return value if isinstance(value, dict) else {}


# Placements


def judge_placement(attempt: AdmissionRequest) -> AdmissionResponse:
    """Warn of the fields of a placement that have no effect."""
    if attempt.kind != PLACEMENT or _keeps_spec(attempt):
        return ALLOWED
    spec = attempt.new.get("spec") or {}
    return AdmissionResponse(
        warnings=tuple(f"spec.{field} has no effect" for field in _IGNORED if _is_set(spec.get(field)))
    )


def _is_set(value: Any) -> bool:
    """Say whether a field is set: clients send empty fields, too."""
    return any(value.values()) if isinstance(value, Mapping) else bool(value)
