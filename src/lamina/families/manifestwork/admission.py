"""
What is refused, and what is warned of, when somebody writes a work, a replica set or a placement.

The schemas refuse what has the wrong shape. Here is what no schema can say: that
manifests are too much together or name an object twice, that the writer may not
act as somebody, and that what is written will not do what it seems to.

Whoever changes nothing of what is judged is not refused: an object that was let
in under another limit can still lose its finalizers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from lamina.core.admission import FINE, Absence, Attempt, Check, Leave, Verdict
from lamina.families.manifestwork.names import (
    CLUSTER_GROUP,
    OWNER,
    PLACEMENT,
    REPLICA_SET,
    WORK,
    WORK_GROUP,
    owner_key,
)
from lamina.families.manifestwork.template import template_of
from lamina.objects import meta
from lamina.objects.types import Made, Obj

LIMIT = 512_000
"""How many bytes all manifests of a work have together, at most."""
_LONGEST_LABEL = 63
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_IGNORED = ("spreadPolicy", "sortBy", "scoreRateLimit")
"""What a placement may say and no scheduler of ours heeds."""
_CHANGED = "oldObject == null || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"
_EXECUTED = f"has(object.spec) && has(object.spec.executor) && ({_CHANGED})"
_OURS = f"request.kind.kind == 'ManifestWork' && has(object.metadata.labels) && '{OWNER}' in object.metadata.labels"


def checks(limit: int = LIMIT, *, schedules: bool = True, replica_sets: bool = True) -> tuple[Check, ...]:
    """Return what servers should ask, given how many bytes of manifests a work may have."""
    works = (
        Check(
            name=f"manifests.{WORK_GROUP}",
            path="/manifestwork/manifests",
            rules=(
                _rule(WORK_GROUP, "manifestworks", ["v1"]),
                _rule(WORK_GROUP, "manifestworkreplicasets", ["v1alpha1", "v1"]),
            ),
            judge=partial(judge_manifests, limit=limit),
            conditions=({"name": "asks-for-something-else", "expression": _CHANGED},),
            # What a replica set sends was judged when its template was written.
            ours=_OURS,
        ),
        Check(
            name=f"executors.{WORK_GROUP}",
            path="/manifestwork/executors",
            rules=(_rule(WORK_GROUP, "manifestworks", ["v1"]),),
            judge=judge_executor,
            # A question of rights: while nobody can answer it, the answer is no.
            absence=Absence.REFUSES,
            conditions=({"name": "acts-as-somebody", "expression": _EXECUTED},),
        ),
    )
    placements = Check(
        name=f"placements.{CLUSTER_GROUP}",
        path="/manifestwork/placements",
        rules=(_rule(CLUSTER_GROUP, "placements", ["v1beta1"]),),
        judge=judge_placement,
    )
    disabled = Check(
        name=f"replicasets.{WORK_GROUP}",
        path="/manifestwork/replicasets",
        rules=(_rule(WORK_GROUP, "manifestworkreplicasets", ["v1alpha1", "v1"], "DELETE"),),
        judge=refuse_replica_set,
    )
    # Another scheduler may heed what ours does not.
    return (*works, *((placements,) if schedules else ()), *(() if replica_sets else (disabled,)))


def refuse_replica_set(attempt: Attempt) -> Verdict:
    """Refuse whatever is done to a replica set, where nobody would roll it out."""
    if attempt.kind != REPLICA_SET:
        return FINE
    return Verdict(refusal="ManifestWorkReplicaSet feature is disabled")


def _rule(group: str, plural: str, versions: list[str], *more: str) -> Made:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": ["CREATE", "UPDATE", *more],
        "resources": [plural],
        "scope": "Namespaced",
    }


def _is_the_same(attempt: Attempt) -> bool:
    """Say whether a write leaves alone what an object asks for."""
    return bool(attempt.old) and attempt.new.get("spec") == attempt.old.get("spec")


# What a work holds


def judge_manifests(attempt: Attempt, limit: int = LIMIT) -> Verdict:
    """Judge the manifests of a work, or those in the template of a replica set."""
    if attempt.kind not in (WORK, REPLICA_SET) or _is_the_same(attempt):
        return FINE
    is_set = attempt.kind == REPLICA_SET
    new = template_of(attempt.new) if is_set else attempt.new.get("spec") or {}
    old = template_of(attempt.old) if is_set else attempt.old.get("spec") or {}
    manifests = _manifests(new)
    if not attempt.old or manifests != _manifests(old):
        refusal = next(_wrongs(manifests, limit), "")
        if refusal:
            return Verdict(refusal=refusal)
    return Verdict(warnings=tuple(_warnings(attempt.new, manifests)) if is_set else ())


def _manifests(template: Obj) -> Sequence[Any]:
    return (template.get("workload") or {}).get("manifests") or ()


def _wrongs(manifests: Sequence[Any], limit: int) -> Iterator[str]:
    """Yield what is wrong with manifests, in the words of the original."""
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


# What a replica set will not do


def _warnings(obj: Obj, manifests: Sequence[Any]) -> Iterator[str]:
    refs = (obj.get("spec") or {}).get("placementRefs") or ()
    strategies = [one.get("rolloutStrategy") or {} for one in refs]
    for place, strategy in enumerate(strategies):
        if strategy.get("failureStrategy") == "AbortAll" and not _has_deadline(strategy):
            yield (
                f"spec.placementRefs[{place}].rolloutStrategy: failureStrategy AbortAll does nothing while "
                "progressDeadline is None: nobody is ever late, and nothing is aborted"
            )
    for place in _misnamed(obj):
        yield (
            f"spec.placementRefs[{place}].rolloutStrategy.rolloutType is no field and is dropped: "
            "the field is called type, and without it everybody gets the change at once"
        )
    defined = [meta.name(one) for one in manifests if one.get("kind") == "CustomResourceDefinition"]
    if defined and any(one.get("failureStrategy") == "AbortAll" for one in strategies):
        yield (
            f"the template holds the CustomResourceDefinition {defined[0]}, and failureStrategy is AbortAll: "
            "an abort that takes a definition away takes every object of its kind along"
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


def _misnamed(obj: Obj) -> Iterator[int]:
    """Yield which placements were given a rolloutType. The server drops it before anybody is asked: kubectl has it."""
    try:
        written = orjson.loads(meta.annotations(obj).get(_LAST_APPLIED) or b"{}")
        for place, one in enumerate((written.get("spec") or {}).get("placementRefs") or ()):
            if "rolloutType" in (one.get("rolloutStrategy") or {}):
                yield place
    except (ValueError, AttributeError, TypeError):
        # Whatever somebody wrote there: it is a note, and this a hint.
        return


# In whose name


def judge_executor(attempt: Attempt) -> Verdict:
    """
    Judge whether the writer may have a work applied in somebody's name.

    Asked whenever the work changes, and not only its executor: who may not act
    as somebody may not put words into their mouth either.
    """
    executor = _map(attempt.new.get("spec")).get("executor")
    if attempt.kind != WORK or not executor or _is_the_same(attempt):
        return FINE
    account = _map(_map(_map(executor).get("subject")).get("serviceAccount"))
    if not account:
        return Verdict(refusal="executor service account can not be nil")
    namespace, name = account.get("namespace") or "", account.get("name") or ""
    return Verdict(
        leave=Leave(
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
    """Return what may be anything if it is a map; whatever else there is says nothing."""
    return value if isinstance(value, dict) else {}


# What a placement says in vain


def judge_placement(attempt: Attempt) -> Verdict:
    """Warn of what a placement says and nobody heeds."""
    if attempt.kind != PLACEMENT or _is_the_same(attempt):
        return FINE
    said = attempt.new.get("spec") or {}
    return Verdict(
        warnings=tuple(f"spec.{field} has no effect" for field in _IGNORED if _says(said.get(field)))
    )


def _says(value: Any) -> bool:
    """Say whether there is anything in a field: programs send fields that nobody has filled."""
    return any(value.values()) if isinstance(value, Mapping) else bool(value)
