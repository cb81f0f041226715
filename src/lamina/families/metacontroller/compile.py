"""
Compiles the spec of a CompositeController or DecoratorController, with the kinds that it names on this cluster.

Setting one up is a function of the spec and of the kinds there are, so it is
tried again whenever either changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from lamina.core.apply.children import Method
from lamina.core.health.probe import Probe, all_of, has_condition
from lamina.core.model.queries import Answers, CallOrigin, Follow
from lamina.errors import BadRequest, SpecError
from lamina.families.metacontroller import api
from lamina.families.metacontroller.hooks.endpoint import Endpoint, credentials_of, endpoint, look_in
from lamina.families.metacontroller.labels import COMPOSITE, DECORATOR, MANAGER, finalizer
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.paths import Path
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement, from_object
from lamina.objects.types import GroupKind, Obj

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


Hooks: TypeAlias = api.CompositeHooks | api.DecoratorHooks


class NoStatus(SpecError):
    """The parent's kind has no status to write to."""


class ChildRule(Struct, frozen=True, kw_only=True):
    """How children of one kind are updated, and when one is healthy."""

    kind: Kind
    method: Method = Method.ON_DELETE
    rolling: bool = False
    check: Probe = all_of(())
    pace: api.RollingUpdate = api.RollingUpdate()


class ParentRule(Struct, frozen=True, kw_only=True):
    """Which objects of one kind are parents: those that one of the selectors matches."""

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
    """Field manager name for server-side apply; without one, children are merged by three-way merge."""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def is_composite(self) -> bool:
        return self.kind == COMPOSITE

    @property
    def controller_name(self) -> str:
        """Return the name of the controller that runs it."""
        return f"{self.kind.kind}-{self.name}"

    @property
    def config_hash(self) -> str:
        """Return the hash of its uid, its spec and the kinds that it names: with another one it is another controller."""
        parents = [rule.kind for rule in self.parents.values()]
        children = [rule.kind for rule in self.children.values()]
        kinds = [[*kind[:2], *sorted(kind.subresources)] for kind in (*parents, *children)]
        return digest([meta.uid(self.obj), self.obj.get("spec"), kinds])

    @property
    def finalizer(self) -> str:
        return finalizer(self.kind, self.name)

    @property
    def applies(self) -> bool:
        return bool(self.applies_as)

    @property
    def origin(self) -> CallOrigin:
        """Return the controller that its hooks are called for."""
        return CallOrigin(MANAGER, self.kind.kind, self.name)

    @property
    def rolls(self) -> bool:
        return any(rule.rolling for rule in self.children.values())

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(one for one in (self.customize, self.sync, self.finalize) if one is not None)

    def unread_credentials(self, kinds: Kinds, answers: Answers) -> tuple[Follow, ...]:
        """Return the queries for the credentials of its hooks that are not answered yet."""
        return tuple(one for one in credentials_of(self.endpoints, kinds) if one not in answers)

    def check_credentials(self, kinds: Kinds, answers: Answers) -> None:
        """Raise SpecError where credentials of a hook are missing."""
        for one in self.endpoints:
            one.check(look_in(answers, kinds))


def composite(obj: Obj, kinds: Kinds, *, applies_as: str = "") -> Setup:
    """Return a CompositeController that can run; SpecError says why one cannot."""
    spec = api.composite(obj)
    hooks = _hooks(spec.hooks)
    resource = spec.parent_resource
    parent = served(kinds, resource.api_version, resource.resource, "spec.parentResource")
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
    history = resource.revision_history or api.RevisionHistory()
    labels = _selector(resource.label_selector, "spec.parentResource.labelSelector")
    rule = ParentRule(
        kind=parent, selectors=((labels, EVERYTHING),), ignores_status=resource.ignore_status_changes
    )
    return replace(
        _setup(obj, COMPOSITE, {parent.group_kind: rule}, children, spec, hooks, applies_as),
        generates_selector=spec.generate_selector,
        paths=tuple(tuple(text.split(".")) for text in history.field_paths or ("spec",)),
        history_limit=history.limit,
    )


def decorator(obj: Obj, kinds: Kinds, *, applies_as: str = "") -> Setup:
    """Return a DecoratorController that can run; SpecError says why one cannot."""
    spec = api.decorator(obj)
    hooks = _hooks(spec.hooks)
    children = [
        _attachment_rule(kinds, rule, f"spec.attachments[{place}]")
        for place, rule in enumerate(spec.attachments)
    ]
    return _setup(obj, DECORATOR, _parent_rules(kinds, spec.resources), children, spec, hooks, applies_as)


def _hooks(hooks: Hooks | None) -> Hooks:
    if hooks is None:
        raise SpecError("spec.hooks: no hooks defined")
    return hooks


def _setup(
    obj: Obj,
    kind: GroupKind,
    parents: Mapping[GroupKind, ParentRule],
    children: Sequence[ChildRule],
    spec: api.CompositeSpec | api.DecoratorSpec,
    hooks: Hooks,
    applies_as: str,
) -> Setup:
    configs, seconds = spec.endpoint_configs, spec.resync_period_seconds
    last = {rule.kind.group_kind: rule.kind for rule in children}
    return Setup(
        obj=obj,
        kind=kind,
        parents=parents,
        children={rule.kind.group_kind: rule for rule in children},
        # Of two rules for one kind the later one counts; the version of the other is shown too.
        also=tuple(dict.fromkeys(rule.kind for rule in children if rule.kind not in last.values())),
        customize=endpoint("customize", hooks.customize, configs),
        sync=endpoint("sync", hooks.sync, configs),
        finalize=endpoint("finalize", hooks.finalize, configs),
        resync=timedelta(seconds=max(1, seconds)) if seconds is not None else None,
        applies_as=applies_as,
    )


def _parent_rules(kinds: Kinds, resources: Sequence[api.DecoratedResource]) -> Mapping[GroupKind, ParentRule]:
    """Return one rule per kind: where several name the same kind, one that matches is enough."""
    rules: dict[GroupKind, ParentRule] = {}
    for place, resource in enumerate(resources):
        where = f"spec.resources[{place}]"
        kind = served(kinds, resource.api_version, resource.resource, where)
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
        kind=served(kinds, rule.api_version, rule.resource, where),
        method=_method(strategy.method),
        rolling=strategy.method.startswith("Rolling"),
        check=all_of(has_condition(one.type, one.status, one.reason) for one in checks),
        pace=strategy.rolling_update or api.RollingUpdate(),
    )


def _attachment_rule(kinds: Kinds, rule: api.Attachment, where: str) -> ChildRule:
    method = rule.update_strategy.method if rule.update_strategy is not None else ""
    return ChildRule(kind=served(kinds, rule.api_version, rule.resource, where), method=_method(method))


def _method(name: str) -> Method:
    """Return what a method does to one child, whether or not it rolls."""
    return Method(name.removeprefix("Rolling") or Method.ON_DELETE)


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
