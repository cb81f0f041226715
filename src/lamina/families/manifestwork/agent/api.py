"""The spec of a ManifestWork, parsed: the fields that an agent reads."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from lamina.core.parse import read
from lamina.objects.types import Obj


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec."""


class Resource(_Part, frozen=True, kw_only=True):
    """One object, named by its resource; as an identifier, `*` in its name or namespace matches any characters."""

    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""

    def covers(self, other: Resource) -> bool:
        """Say whether this identifier, with its wildcards, matches an object."""
        return (
            (self.group, self.resource) == (other.group, other.resource)
            and _matches(self.name, other.name)
            and _matches(self.namespace, other.namespace)
        )

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {where}"


class JsonPathRule(_Part, frozen=True, kw_only=True):
    name: str
    path: str
    version: str = ""


class FeedbackRule(_Part, frozen=True, kw_only=True):
    type: str
    json_paths: tuple[JsonPathRule, ...] = ()


class IgnoreFields(_Part, frozen=True, kw_only=True):
    condition: Literal["OnSpokePresent", "OnSpokeChange"] = "OnSpokePresent"
    json_paths: tuple[str, ...] = ()
    json_pointers: tuple[str, ...] = ()
    jq_path_expressions: tuple[str, ...] = ()


class ServerSideApply(_Part, frozen=True, kw_only=True):
    force: bool = False
    field_manager: str = "work-agent"
    ignore_fields: tuple[IgnoreFields, ...] = ()


class UpdateStrategy(_Part, frozen=True, kw_only=True):
    type: Literal["Update", "CreateOnly", "ServerSideApply", "ReadOnly"] = "Update"
    server_side_apply: ServerSideApply = ServerSideApply()


class ConditionRule(_Part, frozen=True, kw_only=True):
    condition: str
    type: str
    cel_expressions: tuple[str, ...] = ()
    message: str = ""
    message_expression: str = ""


class ManifestConfig(_Part, frozen=True, kw_only=True):
    resource_identifier: Resource
    feedback_rules: tuple[FeedbackRule, ...] = ()
    update_strategy: UpdateStrategy | None = None
    condition_rules: tuple[ConditionRule, ...] = ()


class SelectivelyOrphan(_Part, frozen=True, kw_only=True):
    orphaning_rules: tuple[Resource, ...] = ()


class DeleteOption(_Part, frozen=True, kw_only=True):
    propagation_policy: Literal["Foreground", "Orphan", "SelectivelyOrphan"] = "Foreground"
    selectively_orphans: SelectivelyOrphan = SelectivelyOrphan()


class ServiceAccount(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str


class Subject(_Part, frozen=True, kw_only=True):
    type: str = ""
    service_account: ServiceAccount | None = None


class Executor(_Part, frozen=True, kw_only=True):
    subject: Subject = Subject()


class Terms(_Part, frozen=True, kw_only=True):
    """The spec of a work without its manifests."""

    delete_option: DeleteOption = DeleteOption()
    manifest_configs: tuple[ManifestConfig, ...] = ()
    executor: Executor | None = None

    def orphans(self, resource: Resource) -> bool:
        """Say whether an object is orphaned when the work is deleted."""
        option = self.delete_option
        match option.propagation_policy:
            case "Foreground":
                return False
            case "Orphan":
                return True
            case "SelectivelyOrphan":
                return resource in option.selectively_orphans.orphaning_rules

    def config(self, resource: Resource) -> Config:
        """Return how one object is applied, evaluated and reported: of several matching configs, the first that says so."""
        strategy: UpdateStrategy | None = None
        feedback: tuple[FeedbackRule, ...] = ()
        rules: tuple[ConditionRule, ...] = ()
        for config in self.manifest_configs:
            if config.resource_identifier.covers(resource):
                strategy = strategy or config.update_strategy
                feedback = feedback or config.feedback_rules
                rules = rules or config.condition_rules
        return Config(strategy=strategy or UpdateStrategy(), feedback=feedback, rules=rules)


class Config(Struct, frozen=True, kw_only=True):
    """How one object is applied, evaluated and reported."""

    strategy: UpdateStrategy = UpdateStrategy()
    feedback: tuple[FeedbackRule, ...] = ()
    rules: tuple[ConditionRule, ...] = ()


def terms(work: Obj) -> Terms:
    """Return the spec of a work without its manifests; raises SpecError, which names the field."""
    spec: Obj = work.get("spec") or {}
    return read({key: value for key, value in spec.items() if key != "workload"}, Terms)


def manifests(work: Obj) -> tuple[Any, ...]:
    """Return the manifests of a work, as they were written."""
    return tuple(((work.get("spec") or {}).get("workload") or {}).get("manifests") or ())


def _matches(pattern: str, text: str) -> bool:
    return pattern == text or ("*" in pattern and _pattern(pattern).fullmatch(text) is not None)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
