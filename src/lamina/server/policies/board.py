"""
The policies that are in force, and what they say to a request.

A policy takes effect with the write that binds it. Where nothing is bound, asking
costs no more than finding that out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct

from lamina.errors import ApiError, Cause, Forbidden, Invalid, TooLarge
from lamina.objects.selectors import from_object
from lamina.objects.types import Made, Obj
from lamina.server import words
from lamina.server.kind import Kind
from lamina.server.policies.attempt import Attempt
from lamina.server.policies.matching import Matcher
from lamina.server.policies.names import NAMESPACE, OBJECT, OLD, PARAMS, REQUEST
from lamina.server.records import Records
from lamina.server.registry import Registry
from lamina.server.store import Key, Store

if TYPE_CHECKING:
    from lamina.server.policies.compiled import Compiled
    from lamina.server.policies.judged import Refusal

# Expressions take longer to load than the rest of the server to start. Whoever needs them
# loads them, with the first policy that is bound.

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_EXEMPT: Final = "admissionregistration.k8s.io"
"""The group of policies and webhooks themselves: nothing in it is ever judged, or nobody could undo a mistake."""
_ERRORS: Final[Mapping[str, type[ApiError]]] = {
    "Forbidden": Forbidden,
    "Invalid": Invalid,
    "RequestEntityTooLarge": TooLarge,
}


class _Binding(Struct, frozen=True):
    name: str
    spec: Obj
    matcher: Matcher


class _Policy(Struct, frozen=True):
    """A policy and what binds it."""

    name: str
    spec: Obj
    matcher: Matcher
    made: Compiled
    bindings: Sequence[_Binding]

    @property
    def ignores(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class Misconfigured(Exception):
    """A policy or a binding that cannot be carried out as it is written."""


class Board:
    """What is in force on one control plane."""

    def __init__(self, store: Store, registry: Registry, records: Records) -> None:
        self._store = store
        self._registry = registry
        self._records = records
        self._seen = (-1, -1)
        self._policies: Sequence[_Policy] = ()
        self._made: dict[bytes, Compiled] = {}

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is bound."""
        return not self._store.count(BINDINGS)

    def review(self, attempt: Attempt) -> list[str]:
        """Return what requests are warned of; raises the error of the first policy that is against it."""
        if attempt.kind.group == _EXEMPT:
            return []
        warnings: list[str] = []
        denied: list[ApiError] = []
        for policy in self._current():
            kind = policy.matcher.match(attempt, self._labels, self._registry.versions)
            if kind is None:
                continue
            for binding, refusal in self._refusals(policy, attempt, kind):
                if refusal.failed and policy.ignores:
                    continue
                actions = ("Deny",) if binding is None else binding.spec.get("validationActions") or ()
                if "Deny" in actions:
                    denied.append(_denial(attempt, policy, binding, refusal))
                if "Warn" in actions and binding is not None:
                    warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' "
                        f"with binding '{binding.name}': {refusal.message}"
                    )
        if denied:
            raise denied[0]
        return warnings

    def _current(self) -> Sequence[_Policy]:
        seen = (self._store.changed(POLICIES), self._store.changed(BINDINGS))
        if seen != self._seen:
            bound: dict[str, list[_Binding]] = {}
            for one in self._records.every(BINDINGS):
                spec = one["spec"]
                made = _Binding(one["metadata"]["name"], spec, Matcher(spec.get("matchResources") or {}))
                bound.setdefault(spec.get("policyName") or "", []).append(made)
            kept = self._made
            self._made = {}
            self._policies = [
                self._policy(one, bound[one["metadata"]["name"]], kept)
                for one in self._records.every(POLICIES)
                if one["metadata"]["name"] in bound
            ]
            self._seen = seen
        return self._policies

    def _policy(self, written: Obj, bindings: Sequence[_Binding], kept: Mapping[bytes, Compiled]) -> _Policy:
        from lamina.server.policies.compiled import compile_policy

        spec = written["spec"]
        # Policies that have not changed are not compiled again.
        content = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        made = self._made[content] = kept.get(content) or compile_policy(spec)
        name = written["metadata"]["name"]
        return _Policy(name, spec, Matcher(spec.get("matchConstraints") or {}), made, bindings)

    def _refusals(
        self, policy: _Policy, attempt: Attempt, kind: Kind
    ) -> Iterator[tuple[_Binding | None, Refusal]]:
        """Yield what a policy has against a request, for each of its bindings; None where it is the policy's fault."""
        from lamina.server.policies.judged import Refusal, judge

        try:
            source = self._source(policy.spec.get("paramKind"))
        except Misconfigured as problem:
            yield None, Refusal(f"failed to configure policy: {problem}", failed=True)
            return
        variables: Made | None = None
        for binding in policy.bindings:
            if binding.matcher.match(attempt, self._labels, self._registry.versions) is None:
                continue
            try:
                params = self._params(source, binding.spec.get("paramRef"), attempt.namespace)
            except Misconfigured as problem:
                yield binding, Refusal(f"failed to configure binding: {problem}", failed=True)
                continue
            variables = variables or self._variables(attempt, kind)
            for one in params:
                for refusal in judge(policy.made, {**variables, PARAMS: one}):
                    yield binding, refusal

    def _variables(self, attempt: Attempt, kind: Kind) -> Made:
        new, old = attempt.seen(kind)
        namespace = None
        if attempt.namespace and attempt.kind.bucket != "namespaces":
            namespace = _shown_namespace(self._records.get("namespaces", "", attempt.namespace))
        return {OBJECT: new, OLD: old, REQUEST: attempt.request(kind), NAMESPACE: namespace}

    def _labels(self, namespace: str) -> Any:
        found = self._records.get("namespaces", "", namespace)
        return None if found is None else found["metadata"].get("labels")

    def _source(self, written: Obj | None) -> Kind | None:
        """Return the kind that parameters are of; raises Misconfigured where nobody serves it."""
        if written is None:
            return None
        version, name = written.get("apiVersion") or "", written.get("kind") or ""
        found = [one for one in self._registry.kinds() if one.api_version == version and one.kind == name]
        if not found:
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{version}, Kind={name}'")
        return found[0]

    def _params(self, source: Kind | None, ref: Obj | None, namespace: str) -> list[Obj | None]:
        """Return the parameters to judge with, each in turn; one None where a policy does without."""
        if source is None or ref is None:
            return [None]
        where = ref.get("namespace") or ""
        if where and not source.namespaced:
            raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if source.namespaced and not where:
            where = namespace
            if not where:
                raise Misconfigured(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        found: list[Obj | None] = [
            {**source.shape.read(orjson.loads(row)), "apiVersion": source.api_version, "kind": source.kind}
            for row in self._rows(source, ref, where)
        ]
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _rows(self, source: Kind, ref: Obj, namespace: str) -> Iterator[bytes]:
        if name := ref.get("name"):
            row = self._store.newest(Key(source.bucket, namespace, name))
            if row is not None:
                yield row.value
            return
        selector = from_object(ref.get("selector") or {})
        for one in self._store.list(source.bucket).rows:
            if one.key.namespace == namespace and selector.matches(
                orjson.loads(one.value)["metadata"].get("labels")
            ):
                yield one.value


def _shown_namespace(found: Obj | None) -> Made | None:
    from lamina.server.policies.words import NAMESPACE_METADATA

    if found is None:
        return None
    metadata = {name: part for name, part in found["metadata"].items() if name in NAMESPACE_METADATA}
    return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}


def _denial(attempt: Attempt, policy: _Policy, binding: _Binding | None, refusal: Refusal) -> ApiError:
    by = f" with binding '{binding.name}'" if binding is not None else ""
    said = f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {refusal.message}"
    # It is worded as forbidden whatever its reason.
    worded = words.forbidden(attempt.kind, attempt.name or "Unknown", said, (Cause("", said, ""),))
    error = _ERRORS.get(refusal.reason, Invalid)
    return error(worded.message, details=worded.details, causes=worded.causes)
