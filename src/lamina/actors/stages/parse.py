"""
Parses Stage manifests; errors name the stage and the field.

The format is kwok's Stage. Templates are data with the forms of `template`, not
Go templates, and a few fields are extensions: `selector.containers`,
`selector.share`, `delay.from` and `next.containerTemplate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from lamina.actors.stages.path import Expression
from lamina.actors.stages.stage import (
    EVERYTHING,
    OPERATORS,
    Delay,
    EventTemplate,
    Next,
    Requirement,
    Selector,
    Share,
    Stage,
    share_of,
)
from lamina.actors.stages.template import TemplateError, compiled, expression, text
from lamina.errors import BadRequest, SettingsError
from lamina.objects.selectors import from_object
from lamina.objects.types import GroupKind

API_VERSION = "kwok.x-k8s.io/v1alpha1"


def read_stages(documents: Iterable[Any], source: str) -> tuple[Stage, ...]:
    """Return the stages in these documents, in order; raises SettingsError, which names stage and field."""
    stages: dict[str, Stage] = {}
    for number, document in enumerate(documents):
        if document is None:
            continue
        for one in _items(document):
            stage = _stage(one, source, number)
            if stage.name in stages:
                raise SettingsError(f"{source}: there are two stages called {stage.name}")
            stages[stage.name] = stage
    return tuple(stages.values())


def _items(document: Any) -> Iterable[Any]:
    if isinstance(document, Mapping) and document.get("kind") == "List":
        return document.get("items") or ()
    return document if isinstance(document, list) else (document,)


class _Field(Struct, frozen=True):
    """One value in a stage, and its path."""

    value: Any
    stage: str
    path: str

    def wrong(self, why: str) -> SettingsError:
        return SettingsError(f"{self.stage}: {self.path}: {why}")

    def mapping(self, *known: str) -> Mapping[str, Any]:
        """Return the value as a mapping; raises SettingsError for other fields than these."""
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"expected a mapping, got {self.value!r}")
        unknown = sorted(str(key) for key in self.value.keys() - set(known))
        if known and unknown:
            raise self.wrong(f"there is no field {unknown[0]}; fields are {', '.join(known)}")
        return self.value

    def at(self, name: str) -> _Field:
        return _Field(self.mapping().get(name), self.stage, f"{self.path}.{name}" if self.path else name)

    def each(self) -> list[_Field]:
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.wrong(f"expected a list, got {self.value!r}")
        return [_Field(one, self.stage, f"{self.path}[{number}]") for number, one in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self.wrong(f"expected a string, got {self.value!r}")
        return self.value

    def texts(self) -> tuple[str, ...]:
        return tuple(one.text() for one in self.each())

    def milliseconds(self) -> float | None:
        """Return a number of milliseconds in seconds."""
        if self.value is None:
            return None
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.wrong(f"expected a number of milliseconds, got {self.value!r}")
        return self.value / 1000

    def flag(self) -> bool:
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.wrong(f"expected true or false, got {self.value!r}")
        return self.value

    def expression(self) -> Expression:
        try:
            return expression(self.text(), self.path)
        except TemplateError as error:
            raise self.wrong(error.why) from None

    def from_field(self) -> Expression | None:
        """Return the expression of an `…From` field."""
        self.mapping("expressionFrom")
        return self.at("expressionFrom").expression() if self.value is not None else None


def _stage(document: Any, source: str, number: int) -> Stage:
    root = _Field(document, f"{source}: document {number + 1}", "")
    if not isinstance(document, Mapping) or document.get("kind") != "Stage":
        raise SettingsError(
            f"{source}: document {number + 1} is not a Stage",
            hint=f"it has kind: Stage, apiVersion: {API_VERSION}",
        )
    if document.get("apiVersion") != API_VERSION:
        raise root.at("apiVersion").wrong(f"expected {API_VERSION}, got {document.get('apiVersion')!r}")
    name = root.at("metadata").at("name").text()
    if not name:
        raise root.at("metadata").at("name").wrong("a stage needs a name")
    spec = _Field(document.get("spec"), f"{source}: stage {name}", "spec")
    spec.mapping("resourceRef", "selector", "weight", "delay", "next", "immediateNextStage")
    try:
        return Stage(
            name=name,
            kind=_kind(spec.at("resourceRef")),
            selector=_selector(spec.at("selector")),
            delay=_delay(spec.at("delay")),
            next=_next(spec.at("next")),
            weight=_weight(spec.at("weight")),
        )
    except TemplateError as error:
        raise SettingsError(f"{spec.stage}: {error}") from None


def _kind(field: _Field) -> GroupKind:
    field.mapping("apiGroup", "kind")
    group, kind = field.at("apiGroup").text("v1"), field.at("kind").text()
    if not kind:
        raise field.at("kind").wrong("a stage needs a kind")
    return GroupKind("" if group == "v1" else group.partition("/")[0], kind)


def _weight(field: _Field) -> int:
    if field.value is None:
        return 0
    if not isinstance(field.value, int) or isinstance(field.value, bool) or field.value < 0:
        raise field.wrong(f"expected an integer, got {field.value!r}")
    return field.value


def _selector(field: _Field) -> Selector:
    field.mapping("matchLabels", "matchAnnotations", "matchExpressions", "containers", "share")
    labels = field.at("matchLabels")
    try:
        chosen = from_object({"matchLabels": labels.mapping()}) if labels.value else None
    except BadRequest as invalid:
        raise labels.wrong(str(invalid)) from None
    containers = field.at("containers")
    containers.mapping("matchExpressions")
    return Selector(
        labels=chosen,
        annotations=tuple(
            (str(key), str(value)) for key, value in field.at("matchAnnotations").mapping().items()
        ),
        requirements=_requirements(field.at("matchExpressions")),
        containers=_requirements(containers.at("matchExpressions")) if containers.value is not None else None,
        share=_share(field.at("share")),
    )


def _requirements(field: _Field) -> tuple[Requirement, ...]:
    return _interned_list(tuple(map(_requirement, field.each())))


@lru_cache(maxsize=1024)
def _interned_list(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """Intern a list of requirements, because results are cached by identity."""
    return requirements


def _requirement(field: _Field) -> Requirement:
    field.mapping("key", "operator", "values")
    operator, values = field.at("operator"), field.at("values").texts()
    if operator.text() not in OPERATORS:
        raise operator.wrong(f"expected one of {', '.join(OPERATORS)}, got {operator.value!r}")
    if bool(values) is operator.text().endswith(("Exists", "Exist")):
        raise field.at("values").wrong(f"{operator.value} takes {'none' if values else 'some'}")
    return _interned(field.at("key").expression(), operator.text(), values)


@lru_cache(maxsize=1024)
def _interned(key: Expression, operator: str, values: tuple[str, ...]) -> Requirement:
    """Intern a requirement, because results are cached by identity."""
    return Requirement(key, operator, values)


def _share(field: _Field) -> Share:
    if field.value is None:
        return EVERYTHING
    if isinstance(field.value, Mapping):
        field.mapping("expressionFrom", "default")
        return Share(part=_part(field.at("default"), 1.0), named=field.at("expressionFrom").expression())
    return Share(part=_part(field, 1.0))


def _part(field: _Field, default: float) -> float:
    if field.value is None:
        return default
    part = share_of(field.value, otherwise=-1.0)
    if part < 0:
        raise field.wrong(f"expected a share such as 20% or 0.2, got {field.value!r}")
    return part


def _delay(field: _Field) -> Delay:
    field.mapping(
        "durationMilliseconds",
        "durationFrom",
        "jitterDurationMilliseconds",
        "from",
        "doublesWith",
        "limitMilliseconds",
        "atMostFrom",
        "expiresFrom",
        "rounds",
        "lastsMilliseconds",
    )
    since = field.at("from")
    texts = since.each() if isinstance(since.value, list) else [since] if since.value is not None else []
    of_deletion = [one.value for one in texts] == ["deletion"]
    doubles = field.at("doublesWith")
    return Delay(
        length=field.at("durationMilliseconds").milliseconds() or 0.0,
        most=field.at("jitterDurationMilliseconds").milliseconds(),
        since=() if of_deletion else tuple(one.expression() for one in texts),
        since_deletion=of_deletion,
        named=field.at("durationFrom").from_field(),
        doubles_with=doubles.expression() if doubles.value is not None else None,
        limit=field.at("limitMilliseconds").milliseconds(),
        expires=field.at("expiresFrom").from_field(),
        at_most=field.at("atMostFrom").from_field(),
        rounds=_rounds(field.at("rounds")),
        lasts=field.at("lastsMilliseconds").milliseconds(),
    )


def _rounds(field: _Field) -> tuple[float, float] | None:
    if field.value is None:
        return None
    field.mapping("firstMilliseconds", "longestMilliseconds")
    first = field.at("firstMilliseconds").milliseconds()
    if not first:
        raise field.at("firstMilliseconds").wrong("expected more than 0")
    return first, max(first, field.at("longestMilliseconds").milliseconds() or first)


def _next(field: _Field) -> Next:
    field.mapping(
        "statusTemplate", "containerTemplate", "event", "events", "finalizers", "delete", "statusSubresource"
    )
    status, container = field.at("statusTemplate"), field.at("containerTemplate")
    if isinstance(status.value, str):
        raise status.wrong(
            "expected a mapping; a string is a Go template, which is not supported "
            "(docs/concepts/workloads.md says what is)"
        )
    event = field.at("event")
    finalizers = field.at("finalizers")
    finalizers.mapping("add", "remove", "empty")
    return Next(
        status=compiled(status.mapping(), status.path) if status.value is not None else None,
        container=compiled(container.mapping(), container.path) if container.value is not None else None,
        events=tuple(map(_event_template, [event] if event.value is not None else field.at("events").each())),
        add_finalizers=tuple(one.at("value").text() for one in finalizers.at("add").each()),
        remove_finalizers=tuple(one.at("value").text() for one in finalizers.at("remove").each()),
        empty_finalizers=finalizers.at("empty").flag(),
        delete=field.at("delete").flag(),
    )


def _event_template(field: _Field) -> EventTemplate:
    field.mapping("type", "reason", "message", "forEachRunning")
    kind = field.at("type")
    if kind.text("Normal") not in ("Normal", "Warning"):
        raise kind.wrong(f"expected Normal or Warning, got {kind.value!r}")
    return EventTemplate(
        kind=kind.text("Normal"),
        reason=text(field.at("reason").text(), field.at("reason").path),
        message=text(field.at("message").text(), field.at("message").path),
        for_each_running=field.at("forEachRunning").flag(),
    )
