"""
The policies that are bound, and the review of requests by them.

A policy takes effect with its binding. While there is no binding, a review costs one
comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct

from lamina.errors import ApiError, Cause, Forbidden, Invalid, TooLarge
from lamina.objects.selectors import from_object
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.lister import AdmissionLister
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.admission.policies.matching import Matcher
from lamina.server.kinds.builtin.admission_cel.variables import NAMESPACE, OBJECT, OLD, PARAMS, REQUEST
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.registry import Registry
from lamina.server.storage.store import Key, Store

if TYPE_CHECKING:
    from lamina.server.admission.policies.evaluate import Denial
    from lamina.server.kinds.builtin.admission_cel.compiled import Compiled

# Imported with the first bound policy, because CEL loads slower than the rest of the server.

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_EXEMPT: Final = "admissionregistration.k8s.io"
"""The group of policies and webhooks themselves is exempt, so that a wrong policy can always be removed."""
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
    """A policy and its bindings."""

    name: str
    spec: Obj
    matcher: Matcher
    made: Compiled
    bindings: Sequence[_Binding]

    @property
    def fails_open(self) -> bool:
        """Whether a write proceeds if the policy cannot be evaluated: `failurePolicy: Ignore`."""
        return self.spec.get("failurePolicy") == "Ignore"


class Misconfigured(Exception):
    """A policy or binding that cannot be evaluated as written."""


class ActivePolicies:
    """The bound policies of one cluster."""

    def __init__(self, store: Store, registry: Registry, lister: AdmissionLister) -> None:
        self._store = store
        self._registry = registry
        self._lister = lister
        self._seen = (-1, -1)
        self._policies: Sequence[_Policy] = ()
        self._made: dict[bytes, Compiled] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no binding."""
        return not self._store.count(BINDINGS)

    def review(self, attributes: Attributes) -> list[str]:
        """Return the warnings for a request; raises the error of the first policy that denies it."""
        if attributes.kind.group == _EXEMPT:
            return []
        warnings: list[str] = []
        denied: list[ApiError] = []
        for policy in self._current():
            kind = policy.matcher.match(attributes, self._lister.namespace_labels, self._registry.versions)
            if kind is None:
                continue
            for binding, refusal in self._refusals(policy, attributes, kind):
                if refusal.failed and policy.fails_open:
                    continue
                actions = ("Deny",) if binding is None else binding.spec.get("validationActions") or ()
                if "Deny" in actions:
                    denied.append(_denial(attributes, policy, binding, refusal))
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
            for one in self._lister.list(BINDINGS):
                spec = one["spec"]
                made = _Binding(one["metadata"]["name"], spec, Matcher(spec.get("matchResources") or {}))
                bound.setdefault(spec.get("policyName") or "", []).append(made)
            cached = self._made
            self._made = {}
            self._policies = [
                self._policy(one, bound[one["metadata"]["name"]], cached)
                for one in self._lister.list(POLICIES)
                if one["metadata"]["name"] in bound
            ]
            self._seen = seen
        return self._policies

    def _policy(self, obj: Obj, bindings: Sequence[_Binding], cached: Mapping[bytes, Compiled]) -> _Policy:
        from lamina.server.kinds.builtin.admission_cel.compiled import compile_policy

        spec = obj["spec"]
        # Policies that have not changed are not compiled again.
        content = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        made = self._made[content] = cached.get(content) or compile_policy(spec)
        name = obj["metadata"]["name"]
        return _Policy(name, spec, Matcher(spec.get("matchConstraints") or {}), made, bindings)

    def _refusals(
        self, policy: _Policy, attributes: Attributes, kind: Kind
    ) -> Iterator[tuple[_Binding | None, Denial]]:
        """Yield the refusals of a request, for each binding; the binding is None if the policy itself failed."""
        from lamina.server.admission.policies.evaluate import Denial, evaluate_policy

        try:
            param_kind = self._param_kind(policy.spec.get("paramKind"))
        except Misconfigured as problem:
            yield None, Denial(f"failed to configure policy: {problem}", failed=True)
            return
        variables: Made | None = None
        labels, versions = self._lister.namespace_labels, self._registry.versions
        for binding in policy.bindings:
            if binding.matcher.match(attributes, labels, versions) is None:
                continue
            try:
                params = self._params(param_kind, binding.spec.get("paramRef"), attributes.namespace)
            except Misconfigured as problem:
                yield binding, Denial(f"failed to configure binding: {problem}", failed=True)
                continue
            variables = variables or self._variables(attributes, kind)
            for one in params:
                for refusal in evaluate_policy(policy.made, {**variables, PARAMS: one}):
                    yield binding, refusal

    def _variables(self, attributes: Attributes, kind: Kind) -> Made:
        new, old = attributes.converted(kind)
        namespace = None
        if attributes.namespace and attributes.kind.bucket != "namespaces":
            namespace = _namespace_object(self._lister.get("namespaces", "", attributes.namespace))
        return {OBJECT: new, OLD: old, REQUEST: attributes.request(kind), NAMESPACE: namespace}

    def _param_kind(self, obj: Obj | None) -> Kind | None:
        """Return the kind of the parameters; raises Misconfigured if it is not served."""
        if obj is None:
            return None
        version, name = obj.get("apiVersion") or "", obj.get("kind") or ""
        found = [one for one in self._registry.kinds() if one.api_version == version and one.kind == name]
        if not found:
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{version}, Kind={name}'")
        return found[0]

    def _params(self, param_kind: Kind | None, ref: Obj | None, namespace: str) -> list[Obj | None]:
        """Return the parameters, one per evaluation; a single None if the policy has none."""
        if param_kind is None or ref is None:
            return [None]
        where = ref.get("namespace") or ""
        if where and not param_kind.namespaced:
            raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if param_kind.namespaced and not where:
            where = namespace
            if not where:
                raise Misconfigured(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        found: list[Obj | None] = [
            {
                **param_kind.shape.read(orjson.loads(row)),
                "apiVersion": param_kind.api_version,
                "kind": param_kind.kind,
            }
            for row in self._rows(param_kind, ref, where)
        ]
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _rows(self, param_kind: Kind, ref: Obj, namespace: str) -> Iterator[bytes]:
        if name := ref.get("name"):
            row = self._store.newest(Key(param_kind.bucket, namespace, name))
            if row is not None:
                yield row.value
            return
        selector = from_object(ref.get("selector") or {})
        for one in self._store.list(param_kind.bucket).rows:
            if one.key.namespace == namespace and selector.matches(
                orjson.loads(one.value)["metadata"].get("labels")
            ):
                yield one.value


def _namespace_object(found: Obj | None) -> Made | None:
    from lamina.server.kinds.builtin.admission_cel.environment import NAMESPACE_METADATA

    if found is None:
        return None
    metadata = {name: part for name, part in found["metadata"].items() if name in NAMESPACE_METADATA}
    return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}


def _denial(attributes: Attributes, policy: _Policy, binding: _Binding | None, refusal: Denial) -> ApiError:
    by = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {refusal.message}"
    # kube-apiserver words it as forbidden whatever its reason.
    text = status_errors.forbidden(
        attributes.kind, attributes.name or "Unknown", message, (Cause("", message, ""),)
    )
    error = _ERRORS.get(refusal.reason, Invalid)
    return error(text.message, details=text.details, causes=text.causes)
