"""
A controller, ready to run: what its spec says, and which kinds that means on this cluster.

Setting one up is a function of the spec and of the kinds there are, so it is
tried again whenever either changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec import Struct, to_builtins

from lamina.core.children import Method
from lamina.core.probe import Probe, all_of, has_condition
from lamina.core.questions import AskedBy
from lamina.errors import BadRequest, SpecError
from lamina.families.metacontroller import api
from lamina.families.metacontroller.names import COMPOSITE, DECORATOR, MANAGER, finalizer
from lamina.families.metacontroller.webhooks import Endpoint, endpoint
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.paths import Path
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement, from_object
from lamina.objects.types import GroupKind, Obj

_METHODS = {
    "": Method.ON_DELETE,
    "OnDelete": Method.ON_DELETE,
    "Recreate": Method.RECREATE,
    "InPlace": Method.IN_PLACE,
    "RollingRecreate": Method.RECREATE,
    "RollingInPlace": Method.IN_PLACE,
}


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class NoStatus(SpecError):
    """The parent's kind has no status to write to."""


class ChildRule(Struct, frozen=True, kw_only=True):
    """What is said about children of one kind."""

    kind: Kind
    method: Method = Method.ON_DELETE
    rolling: bool = False
    check: Probe = all_of(())
    pace: api.RollingUpdate = api.RollingUpdate()


class ParentRule(Struct, frozen=True, kw_only=True):
    """Which objects of one kind are parents: those that one of the selectors wants."""

    kind: Kind
    selectors: tuple[tuple[LabelSelector, LabelSelector], ...] = ((EVERYTHING, EVERYTHING),)
    """Of labels, and of annotations; both have to match."""
    ignores_status: bool = False

    def wants(self, obj: Obj) -> bool:
        return any(
            labels.matches(meta.labels(obj)) and annotations.matches(meta.annotations(obj))
            for labels, annotations in self.selectors
        )


class Setup(Struct, frozen=True, kw_only=True):
    """One CompositeController or DecoratorController, ready to run."""

    obj: Obj
    kind: GroupKind
    parents: Mapping[GroupKind, ParentRule]
    children: Mapping[GroupKind, ChildRule]
    customize: Endpoint | None
    sync: Endpoint | None
    finalize: Endpoint | None
    resync: timedelta | None
    also: tuple[Kind, ...] = ()
    """Other versions in which children are shown to hooks too, where several rules name one kind."""
    generates_selector: bool = False
    paths: tuple[Path, ...] = ()
    history_limit: int = 0
    applies_as: str = ""
    """Under which name children are applied by the server; without one, a record is kept on the child."""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def finalizer(self) -> str:
        return finalizer(self.kind, self.name)

    @property
    def applies(self) -> bool:
        return bool(self.applies_as)

    @property
    def asked_by(self) -> AskedBy:
        """Return on whose account its hooks are called."""
        return AskedBy(MANAGER, self.kind.kind, self.name)

    @property
    def rolls(self) -> bool:
        return any(rule.rolling for rule in self.children.values())

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(one for one in (self.customize, self.sync, self.finalize) if one is not None)


def composite(obj: Obj, kinds: Kinds, *, applies_as: str = "") -> Setup:
    """Return a CompositeController that can run; SpecError says why one cannot."""
    spec = api.composite(obj)
    if spec.hooks is None:
        raise SpecError("spec.hooks: no hooks defined")
    parent = _kind(kinds, spec.parent_resource, "spec.parentResource")
    if "status" not in parent.subresources:
        raise NoStatus(
            f"spec.parentResource: {parent.plural}.{parent.group or 'core'} does not have subresource "
            "'Status' enabled"
        )
    children = [
        _child_rule(kinds, rule, f"spec.childResources[{place}]")
        for place, rule in enumerate(spec.child_resources)
    ]
    rolling = [rule for rule in children if rule.rolling]
    if rolling and not parent.namespaced:
        raise SpecError(
            f"spec.childResources: {rolling[0].kind.plural} cannot roll, because {parent.plural} are "
            "cluster-scoped and their revisions would have no namespace to be in"
        )
    history = spec.parent_resource.revision_history or api.RevisionHistory()
    configs = spec.endpoint_configs
    labels = _selector(spec.parent_resource.label_selector, "spec.parentResource.labelSelector")
    return Setup(
        obj=obj,
        kind=COMPOSITE,
        parents={
            parent.group_kind: ParentRule(
                kind=parent,
                selectors=((labels, EVERYTHING),),
                ignores_status=spec.parent_resource.ignore_status_changes,
            )
        },
        children={rule.kind.group_kind: rule for rule in children},
        also=_other_versions(children),
        customize=endpoint("customize", spec.hooks.customize, configs),
        sync=endpoint("sync", spec.hooks.sync, configs),
        finalize=endpoint("finalize", spec.hooks.finalize, configs),
        resync=_period(spec.resync_period_seconds),
        generates_selector=spec.generate_selector,
        paths=_paths(history.field_paths or ("spec",)),
        history_limit=history.limit,
        applies_as=applies_as,
    )


def decorator(obj: Obj, kinds: Kinds, *, applies_as: str = "") -> Setup:
    """Return a DecoratorController that can run; SpecError says why one cannot."""
    spec = api.decorator(obj)
    if spec.hooks is None:
        raise SpecError("spec.hooks: no hooks defined")
    children = [
        _attachment_rule(kinds, rule, f"spec.attachments[{place}]")
        for place, rule in enumerate(spec.attachments)
    ]
    configs = spec.endpoint_configs
    return Setup(
        obj=obj,
        kind=DECORATOR,
        parents=_parent_rules(kinds, spec.resources),
        children={rule.kind.group_kind: rule for rule in children},
        also=_other_versions(children),
        customize=endpoint("customize", spec.hooks.customize, configs),
        sync=endpoint("sync", spec.hooks.sync, configs),
        finalize=endpoint("finalize", spec.hooks.finalize, configs),
        resync=_period(spec.resync_period_seconds),
        applies_as=applies_as,
    )


def _other_versions(rules: Sequence[ChildRule]) -> tuple[Kind, ...]:
    """Return the versions of kinds that a later rule names in another one: it is the later rule that counts."""
    last = {rule.kind.group_kind: rule.kind for rule in rules}
    return tuple(dict.fromkeys(rule.kind for rule in rules if rule.kind not in last.values()))


def _parent_rules(kinds: Kinds, resources: Sequence[api.DecoratedResource]) -> Mapping[GroupKind, ParentRule]:
    """Return one rule a kind: of several that name the same, any may want an object."""
    rules: dict[GroupKind, ParentRule] = {}
    for place, resource in enumerate(resources):
        where = f"spec.resources[{place}]"
        kind = _kind(kinds, resource, where)
        both = (
            _selector(resource.label_selector, f"{where}.labelSelector"),
            _annotation_selector(resource.annotation_selector, f"{where}.annotationSelector"),
        )
        known = rules.get(kind.group_kind)
        rules[kind.group_kind] = ParentRule(
            kind=known.kind if known else kind,
            selectors=(*(known.selectors if known else ()), both),
            ignores_status=resource.ignore_status_changes and (known is None or known.ignores_status),
        )
    return rules


def _annotation_selector(selector: api.AnnotationSelector | None, where: str) -> LabelSelector:
    """Return a selector of annotations: it works like one of labels, and its values may be any text."""
    if selector is None:
        return EVERYTHING
    found = [Requirement(key, "=", (value,)) for key, value in selector.match_annotations.items()]
    for place, term in enumerate(selector.match_expressions):
        operator, here = _OPERATORS.get(term.operator), f"{where}.matchExpressions[{place}]"
        if operator is None:
            raise SpecError(
                f'{here}.operator: expected one of {", ".join(_OPERATORS)}, got "{term.operator}"'
            )
        if bool(term.values) != (operator in ("in", "notin")):
            raise SpecError(f"{here}.values: In and NotIn need some, and the others have none")
        found.append(Requirement(term.key, operator, term.values))
    return LabelSelector(tuple(found))


def _child_rule(kinds: Kinds, rule: api.ChildResource, where: str) -> ChildRule:
    strategy = rule.update_strategy or api.ChildUpdateStrategy()
    checks = strategy.status_checks.conditions if strategy.status_checks is not None else ()
    return ChildRule(
        kind=_kind(kinds, rule, where),
        method=_METHODS[strategy.method],
        rolling=strategy.method.startswith("Rolling"),
        check=all_of(has_condition(one.type, one.status, one.reason) for one in checks),
        pace=strategy.rolling_update or api.RollingUpdate(),
    )


def _attachment_rule(kinds: Kinds, rule: api.Attachment, where: str) -> ChildRule:
    method = rule.update_strategy.method if rule.update_strategy is not None else ""
    return ChildRule(kind=_kind(kinds, rule, where), method=_METHODS[method])


def _kind(
    kinds: Kinds,
    wanted: api.ParentResource | api.ChildResource | api.DecoratedResource | api.Attachment,
    where: str,
) -> Kind:
    return served(kinds, wanted.api_version, wanted.resource, where)


def served(kinds: Kinds, api_version: str, resource: str, where: str) -> Kind:
    """Return the kind whose plural and version these are; SpecError where the cluster does not serve it."""
    for kind in kinds.versions():
        if kind.plural == resource and kind.api_version == api_version:
            return kind
    raise SpecError(
        f"{where}: discovery: can't find resource {resource} in apiVersion {api_version}",
        hint="it is looked for again whenever a definition comes",
    )


def _selector(selector: api.LabelSelector | None, where: str) -> LabelSelector:
    if selector is None:
        return EVERYTHING
    try:
        return from_object(to_builtins(selector))
    except BadRequest as wrong:
        raise SpecError(f"{where}: {wrong}") from None


def _period(seconds: int | None) -> timedelta | None:
    return timedelta(seconds=max(1, seconds)) if seconds is not None else None


def _paths(texts: Sequence[str]) -> tuple[Path, ...]:
    return tuple(tuple(text.split(".")) for text in texts)
