"""What a work asks of an agent, as it is spelled on the hub; only what an agent reads."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from lamina.core.reading import read
from lamina.objects.types import Obj


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """Something a spec is made of."""


class Resource(_Part, frozen=True, kw_only=True):
    """One object, named by its resource; in places that say so, `*` in its name or namespace stands for anything."""

    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""

    def covers(self, other: Resource) -> bool:
        """Say whether another is meant by this, wildcards and all."""
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
    """Everything a work says beside its manifests."""

    delete_option: DeleteOption = DeleteOption()
    manifest_configs: tuple[ManifestConfig, ...] = ()
    executor: Executor | None = None

    def orphans(self, resource: Resource) -> bool:
        """Say whether an object stays when the work goes."""
        option = self.delete_option
        match option.propagation_policy:
            case "Foreground":
                return False
            case "Orphan":
                return True
            case "SelectivelyOrphan":
                return resource in option.selectively_orphans.orphaning_rules

    def config(self, resource: Resource) -> Config:
        """Return how one object is applied, judged and reported on: of several that mean it, the first that says so."""
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
    """How one object is applied, judged and reported on."""

    strategy: UpdateStrategy = UpdateStrategy()
    feedback: tuple[FeedbackRule, ...] = ()
    rules: tuple[ConditionRule, ...] = ()


def terms(work: Obj) -> Terms:
    """Return what a work says beside its manifests; SpecError, with the field, where that is not understood."""
    spec: Obj = work.get("spec") or {}
    return read({key: value for key, value in spec.items() if key != "workload"}, Terms)


def manifests(work: Obj) -> tuple[Any, ...]:
    """Return what a work wants applied, as it was written."""
    return tuple(((work.get("spec") or {}).get("workload") or {}).get("manifests") or ())


def _matches(pattern: str, text: str) -> bool:
    return pattern == text or ("*" in pattern and _pattern(pattern).fullmatch(text) is not None)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
