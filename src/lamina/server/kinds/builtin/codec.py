"""Decoding, defaulting, preparation and conversion of one built-in kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from lamina.objects.types import Made, Obj
from lamina.server.decode_errors import unhandled
from lamina.server.kinds.builtin import strategy
from lamina.server.kinds.builtin.catalogue import Resource
from lamina.server.kinds.builtin.convert import FROM_STORAGE, TO_STORAGE
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.builtin.defaults import default
from lamina.server.kinds.builtin.structs import key_of
from lamina.server.kinds.kind import Findings


class BuiltinCodec:
    """
    One built-in kind in one version.

    If the stored version differs, objects are prepared in the stored version: the
    annotations of an autoscaling/v1 autoscaler are spec and status fields there, and
    belong to those endpoints.
    """

    def __init__(self, resource: Resource, now: Callable[[], datetime]) -> None:
        self._kind = resource.kind
        self._version = resource.version
        self._now = now
        self._key = key_of(resource.definition)
        self._from_storage, self._to_storage = FROM_STORAGE.get(self._key), TO_STORAGE.get(self._key)
        self._strategy = strategy.strategy_of(self._key)

    @property
    def has_generation(self) -> bool:
        return self._strategy.numbered

    @property
    def counts_annotations(self) -> bool:
        return ("metadata", "annotations") in self._strategy.counted

    @property
    def has_status(self) -> bool:
        return True

    @property
    def converts(self) -> bool:
        """Whether this version differs from the stored one."""
        return self._from_storage is not None

    def decode(self, body: Made, findings: Findings) -> Made:
        try:
            return decode(self._key, body, findings)
        except TypeMismatch as error:
            raise unhandled(self._kind, self._version, self._kind, str(error)) from None

    def default(self, obj: Made) -> None:
        default(self._key, obj)

    def prepare_create(self, obj: Made) -> None:
        made = self.store({**obj}) if self.converts else obj
        strategy.prepare_create(self._strategy, made, self._stamp)
        self._write_back(made, obj)

    def prepare_update(self, new: Made, old: Obj, subresource: str, stamp: str = "") -> None:
        made = self.store({**new}) if self.converts else new
        before = self.store({**old}) if self.converts else old
        strategy.prepare_update(self._strategy, made, before, subresource, stamp or self._stamp())
        self._write_back(made, new)

    def reset_fields(self, subresource: str) -> Sequence[tuple[str, ...]]:
        return strategy.reset_fields(self._strategy, subresource)

    def read(self, stored: Made) -> Made:
        return stored if self._from_storage is None else self._from_storage(stored)

    def store(self, obj: Made) -> Made:
        return obj if self._to_storage is None else self._to_storage(obj)

    def _write_back(self, made: Made, obj: Made) -> None:
        if made is not obj:
            shown = self.read(made)
            obj.clear()
            obj.update(shown)

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
