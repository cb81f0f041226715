"""The related objects that a customize hook selects, as queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lamina.core.apply.change_check import without_status
from lamina.core.model.queries import Answers, Call, Follow, Listed, Query
from lamina.errors import BadRequest, HookError, SpecError
from lamina.families.metacontroller import api
from lamina.families.metacontroller.compile import served
from lamina.families.metacontroller.hooks.endpoint import Endpoint, Secret
from lamina.families.metacontroller.hooks.protocol import Shown, customize_request, read_customize
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind
from lamina.objects.selectors import EVERYTHING, from_object
from lamina.objects.types import Obj

_KEPT = 1200.0


def customize_call(view: View, endpoint: Endpoint, look: Secret) -> Call:
    """Return the call of the customize hook: memoized for a parent that differs only in its status."""
    memo = digest(
        [
            view.setup.name,
            meta.uid(view.setup.obj),
            meta.generation(view.setup.obj),
            without_status(view.parent),
        ]
    )
    body = customize_request(view.setup, view.parent)
    return endpoint.call(
        body, look, about=view.about, memo=memo, memo_seconds=_KEPT, origin=view.setup.origin
    )


def read_rules(
    view: View, endpoint: Endpoint, body: bytes
) -> tuple[tuple[api.RelatedResourceRule, Kind], ...]:
    """Return the rules of a customize hook; HookError, which names the rule, where one is invalid."""
    return tuple(
        _rule(view, endpoint, written, f"relatedResources[{place}]")
        for place, written in enumerate(read_customize(endpoint, body))
    )


def _rule(view: View, endpoint: Endpoint, written: Any, where: str) -> tuple[api.RelatedResourceRule, Kind]:
    try:
        rule = api.rule(written)
        kind = served(view.kinds, rule.api_version, rule.resource, where)
    except SpecError as wrong:
        raise HookError(str(wrong).replace("relatedResources[]", where)) from None
    home = meta.namespace(view.parent)
    for selector in (rule.label_selector, rule.namespace_selector):
        _check_selector(selector, where)
    if rule.names and (rule.label_selector is not None or rule.namespace_selector is not None):
        raise HookError(f"{where}: names cannot be combined with a selector")
    if rule.namespace and rule.namespace_selector is not None:
        raise HookError(f"{where}: namespace cannot be combined with namespaceSelector")
    if rule.namespace_selector is not None and not kind.namespaced:
        raise HookError(
            f"{where}: namespaceSelector is not allowed for {kind.plural}, which are cluster-scoped"
        )
    if endpoint.version == "v1" and home:
        if rule.namespace_selector is not None:
            raise HookError(
                f"{where}: namespaceSelector needs version v2 of the hook, or a cluster-scoped parent"
            )
        if rule.namespace and rule.namespace != home and kind.namespaced:
            raise HookError(
                f"{where}: requested related object namespace {rule.namespace} differs from parent object "
                f"namespace {home}"
            )
    return rule, kind


def follows(
    view: View, endpoint: Endpoint, rules: Sequence[tuple[api.RelatedResourceRule, Kind]], answers: Answers
) -> Iterator[tuple[Kind, Query]]:
    """
    Yield what has to be followed for these rules, and for which kind it is.

    A rule that selects namespaces asks for those first.
    """
    namespaces = view.kinds.find("v1", "Namespace")
    for rule, kind in rules:
        places: tuple[str, ...] | None = None
        if rule.namespace_selector is not None:
            assert namespaces is not None, "every cluster has namespaces"
            first = Follow(kind=namespaces, labels=from_object(rule.namespace_selector))
            found = answers.get(first)
            if not isinstance(found, Listed):
                yield kind, first
                continue
            places = tuple(sorted(map(meta.name, found.objects)))
            # Queried in every pass, so that a namespace that is relabelled enqueues the parent.
            yield kind, first
        elif kind.namespaced and rule.namespace:
            places = (rule.namespace,)
        elif kind.namespaced and endpoint.version == "v1" and meta.namespace(view.parent):
            places = (meta.namespace(view.parent),)
        yield (
            kind,
            Follow(
                kind=kind,
                namespaces=places,
                names=rule.names or None,
                labels=from_object(rule.label_selector) if rule.label_selector else EVERYTHING,
            ),
        )


def _check_selector(selector: Obj | None, where: str) -> None:
    try:
        from_object(selector or {})
    except (BadRequest, AttributeError, TypeError) as wrong:
        raise HookError(f"{where}: invalid selector: {wrong}") from None


def shown(
    view: View, endpoint: Endpoint, rules: Sequence[tuple[api.RelatedResourceRule, Kind]], answers: Answers
) -> Shown:
    """Return what these rules select; every kind they name is there, if only empty."""
    found: dict[Kind, dict[str, Obj]] = {kind: {} for _, kind in rules}
    for kind, question in follows(view, endpoint, rules, answers):
        answer = answers.get(question)
        if isinstance(question, Follow) and question.kind == kind and isinstance(answer, Listed):
            found[kind] |= {meta.uid(obj): obj for obj in answer.objects}
    return {kind: tuple(those.values()) for kind, those in found.items()}
