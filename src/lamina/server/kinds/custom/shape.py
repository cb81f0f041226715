"""One version of a custom kind: decoding, defaulting, validation and storage of its objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson

from lamina.errors import Cause
from lamina.objects.types import Made, Obj
from lamina.server.decode_errors import unhandled
from lamina.server.field_errors import invalid
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.columns import PathColumns
from lamina.server.kinds.custom.compiled_validator import Check, compile_check, compiled
from lamina.server.kinds.custom.default import Step, defaulter, fresh, null_pruner
from lamina.server.kinds.custom.document import Document, has_rules
from lamina.server.kinds.custom.embedded import Embedded, MetadataMismatch, decoded_metadata, embedded
from lamina.server.kinds.custom.go_values import is_integer, plain, same
from lamina.server.kinds.custom.listtypes import Distinct, distinct
from lamina.server.kinds.custom.prune import Pruner, closed, root_pruner
from lamina.server.kinds.custom.ratchet import Link
from lamina.server.kinds.custom.scale import ScalePaths, validate_replicas, validate_selector
from lamina.server.kinds.custom.validator import Validator
from lamina.server.kinds.kind import Column, Findings, RatchetedCause

if TYPE_CHECKING:
    from lamina.server.kinds.custom.cel_rules.rules import Rules

_WHOLE_FLOAT: Final = re.compile(rb"\.0[,\]}]|[0-9]e\+?[0-9]|[0-9]{19}")
_BLOCKING: Final = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
    "FieldValueTypeInvalid",
})  # fmt: skip
"""Causes after which the CEL rules are not evaluated, because they may need the missing values."""

_UNCHECKED: Final = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Form:
    """
    A compiled schema: pruning, defaulting and validation.

    Expensive parts are compiled on first use, because most kinds are never written.
    """

    def __init__(self, document: Document) -> None:
        self.document = document

    @cached_property
    def _prune(self) -> Pruner:
        return root_pruner(self.document)

    @cached_property
    def _drop_nulls(self) -> Step | None:
        return null_pruner(self.document)

    @cached_property
    def _fill(self) -> Step | None:
        return defaulter(self.document)

    @cached_property
    def _embedded(self) -> Embedded | None:
        return embedded(self.document)

    @cached_property
    def _distinct(self) -> Distinct | None:
        return distinct(self.document)

    @cached_property
    def has_rules(self) -> bool:
        return has_rules(self.document)

    @cached_property
    def _is_clean(self) -> Check:
        return compiled(closed(self.document, is_root=True) or {})

    @cached_property
    def _is_valid(self) -> Check:
        return compile_check(self.document) or (lambda value: False)

    @cached_property
    def _walker(self) -> Validator:
        return Validator(self.document)

    @cached_property
    def _status(self) -> tuple[Check, Validator] | None:
        document = self.document.get("properties", {}).get("status")
        if document is None:
            return None
        return compile_check(document) or (lambda value: False), Validator(document)

    @cached_property
    def rules(self) -> Rules:
        # Loaded with the first rule, because CEL loads slower than the rest of the server.
        from lamina.server.kinds.custom.cel_rules.rules import Rules

        return Rules(self.document)

    def clean(self, obj: Made, findings: Findings) -> None:
        """Prune an object in place, drop nulls, and decode embedded metadata; raises Misfit."""
        if self._is_clean(obj):
            return
        pruned: list[str] = []
        self._prune(obj, "", pruned)
        for path in sorted(pruned):
            findings.unknown(path)
        if self._drop_nulls is not None:
            self._drop_nulls(obj)
        if self._embedded is not None:
            unknown = Findings()
            self._embedded.decode(obj, unknown)
            findings.sentences += [one for one in sorted(unknown.sentences) if one not in findings.sentences]

    def clean_stored(self, obj: Made) -> None:
        """Do the same with a stored object, which may be older than the schema and is not refused."""
        if self._is_clean(obj):
            return
        self._prune(obj, "", [])
        if self._drop_nulls is not None:
            self._drop_nulls(obj)
        if self._embedded is not None:
            self._embedded.repair(obj)

    def fill(self, obj: Made) -> None:
        """Set the defaults in place."""
        if self._fill is not None:
            self._fill(obj)

    def causes(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        """Return the errors of an object by its schema; on update, of what changed."""
        if self._is_valid(new):
            return []
        return self._walker.causes(new, "", None if old is None else Link(self.document, new, old))

    def status_causes(self, new: Obj, old: Obj) -> list[Cause]:
        """Return the errors of a new status by the schema."""
        if self._status is None or "status" not in new:
            return []
        is_valid, walker = self._status
        if is_valid(new["status"]):
            return []
        return walker.causes(new["status"], "status", Link(self.document, new, old).field("status"))

    def embedded_causes(self, obj: Obj) -> list[Cause]:
        return [] if self._embedded is None else list(self._embedded.causes(obj))

    def list_causes(self, obj: Obj) -> list[Cause]:
        if self._distinct is None or self._distinct.is_certainly_unique(obj):
            return []
        return list(self._distinct.causes(obj))


@dataclass(slots=True, kw_only=True, eq=False)
class CustomShape:
    """
    The behavior of one version of a custom kind.

    `form` is this version's schema and `storage` the stored version's; they are the same
    value if the schemas are equal.
    """

    kind: str
    version: str
    api_version: str
    form: Form
    storage: Form
    has_status: bool = False
    scale: ScalePaths | None = None
    table: PathColumns
    field_labels: Mapping[str, Callable[[Obj], str]] = field(default_factory=dict)

    columns: tuple[Column, ...] = field(init=False)

    @property
    def has_generation(self) -> bool:
        return True

    @property
    def counts_annotations(self) -> bool:
        return False

    def __post_init__(self) -> None:
        self.columns = self.table.columns

    def decode(self, body: Made, findings: Findings) -> Made:
        try:
            if "metadata" in body:
                body["metadata"] = decoded_metadata(body["metadata"], findings, "metadata")
            self.form.clean(body, findings)
        except (TypeMismatch, MetadataMismatch) as problem:
            raise unhandled(self.kind, self.version, self.kind, str(problem)) from None
        return body

    def default(self, obj: Made) -> None:
        self.form.fill(obj)

    def prepare_create(self, obj: Made) -> None:
        if self.has_status:
            obj.pop("status", None)
        obj.setdefault("metadata", {})["generation"] = 1

    def prepare_update(self, new: Made, old: Obj, subresource: str, stamp: str = "") -> None:
        if subresource == "status":
            self._only_status(new, old)
            return
        if self.has_status:
            if "status" in old:
                new["status"] = fresh(old["status"])
            else:
                new.pop("status", None)
        if _content(new) != _content(old) or not same(_content(new), _content(old)):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def _only_status(self, new: Made, old: Obj) -> None:
        status, metadata = new.get("status", _content), new.setdefault("metadata", {})
        owned = metadata.get("managedFields")
        metadata.clear()
        metadata.update(fresh({key: part for key, part in old["metadata"].items() if key != "managedFields"}))
        if owned is not None:
            metadata["managedFields"] = owned
        for name in [name for name in new if name not in ("metadata", "status")]:
            del new[name]
        new.update({name: fresh(part) for name, part in old.items() if name not in ("metadata", "status")})
        if status is _content:
            new.pop("status", None)

    def validate_create(self, obj: Obj) -> Sequence[Cause]:
        whole = self._whole(obj)
        causes = [*self.form.causes(whole), *self._scale_causes(obj, spec=True)]
        causes += self.form.embedded_causes(whole)
        causes += self.form.list_causes(obj)
        return self._with_rules(causes, whole, None)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]:
        whole, before = self._whole(new), self._whole(old)
        if subresource == "status":
            causes = [*self.form.status_causes(new, old), *self._scale_causes(new, spec=False)]
        else:
            causes = self.form.causes(whole, before)
            causes += self._scale_causes(new, spec=True)
            causes += self.form.embedded_causes(whole)
        lists = self.form.list_causes(new)
        if lists and not self.form.list_causes(old):
            causes += lists
        return self._with_rules(causes, whole, before)

    def _whole(self, obj: Obj) -> Made:
        return {"apiVersion": self.api_version, "kind": self.kind, **obj}

    def _scale_causes(self, obj: Obj, *, spec: bool) -> list[Cause]:
        if self.scale is None:
            return []
        causes = validate_replicas(obj, self.scale.spec) if spec else []
        causes += validate_replicas(obj, self.scale.status)
        if self.scale.selector:
            causes += validate_selector(obj, self.scale.selector)
        return causes

    def _with_rules(self, causes: list[Cause], new: Obj, old: Obj | None) -> list[Cause]:
        """Return the errors with those of the rules, if the object is valid enough to evaluate them."""
        if not self.form.has_rules:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _UNCHECKED]
        result = self.form.rules.validate(new, old)
        return [*causes, *result.causes, *(RatchetedCause(*cause) for cause in result.excused)]

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        return ()

    def reset_fields(self, subresource: str) -> Sequence[tuple[str, ...]]:
        if subresource == "status":
            return (("spec",),)
        return (("status",),) if self.has_status and not subresource else ()

    def read(self, stored: Made) -> Made:
        self.storage.clean_stored(stored)
        self.storage.fill(stored)
        if self.form is not self.storage:
            self.form.clean_stored(stored)
        return stored

    def store(self, obj: Made) -> Made:
        if _WHOLE_FLOAT.search(orjson.dumps(obj)):
            obj = {name: _whole_numbers(part) for name, part in obj.items()}
        if self.form is self.storage:
            # A status that was removed becomes its default, as on read.
            self.form.fill(obj)
        else:
            self.storage.clean_stored(obj)
        return obj

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        return self.table.cells(obj, now)


def _content(obj: Obj) -> Made:
    return {name: part for name, part in obj.items() if name not in ("metadata", "kind", "apiVersion")}


def _whole_numbers(value: Any) -> Any:
    """Return a value with whole floats as integers, as kube-apiserver stores them."""
    if isinstance(value, float) or (type(value) is int and not is_integer(value)):
        number = float(value)
        # All significant digits, then zeros, as Go prints it.
        return int(Decimal(repr(number))) if number.is_integer() and abs(number) < 2**64 else number
    if isinstance(value, dict):
        return {name: _whole_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(part) for part in value]
    return value


def field_label(path: str) -> tuple[str, Callable[[Obj], str]]:
    """Return the label of a selectable field, and the function that reads it."""
    name = path.removeprefix(".")
    steps = name.split(".")

    def read(obj: Obj) -> str:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return plain(value) if isinstance(value, int | float) else str(value)

    return name, read
