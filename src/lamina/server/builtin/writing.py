"""How objects of one built-in kind are written: decoded, defaulted, prepared, converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from lamina.objects.types import Made, Obj
from lamina.server.builtin import strategy
from lamina.server.builtin.catalogue import Resource
from lamina.server.builtin.convert import SHOWN, STORED
from lamina.server.builtin.decode import Undecodable, decode
from lamina.server.builtin.defaults import default
from lamina.server.builtin.structs import key_of
from lamina.server.kind import Findings
from lamina.server.misread import unhandled


class Writing:
    """
    One built-in kind in one version, as far as writing goes.

    A kind that is stored in another form than it is shown in is prepared in the
    stored one: what version 1 of an autoscaler keeps in annotations is spec and
    status there, and belongs to their endpoints.
    """

    def __init__(self, resource: Resource, now: Callable[[], datetime]) -> None:
        self._kind = resource.kind
        self._version = resource.version
        self._now = now
        self._key = key_of(resource.definition)
        self._shown, self._stored = SHOWN.get(self._key), STORED.get(self._key)
        self._strategy = strategy.strategy_of(self._key)

    @property
    def converts(self) -> bool:
        """Whether this version shows objects in another form than the stored one."""
        return self._shown is not None

    def decode(self, body: Made, findings: Findings) -> Made:
        try:
            return decode(self._key, body, findings)
        except Undecodable as error:
            raise unhandled(self._kind, self._version, self._kind, str(error)) from None

    def default(self, obj: Made) -> None:
        default(self._key, obj)

    def prepare_create(self, obj: Made) -> None:
        made = self.store({**obj}) if self.converts else obj
        strategy.prepare_create(self._strategy, made, self._stamp)
        self._show(made, obj)

    def prepare_update(self, new: Made, old: Obj, subresource: str, stamp: str = "") -> None:
        made = self.store({**new}) if self.converts else new
        before = self.store({**old}) if self.converts else old
        strategy.prepare_update(self._strategy, made, before, subresource, stamp or self._stamp())
        self._show(made, new)

    def untracked(self, subresource: str) -> Sequence[tuple[str, ...]]:
        return strategy.untracked(self._strategy, subresource)

    def read(self, stored: Made) -> Made:
        return stored if self._shown is None else self._shown(stored)

    def store(self, obj: Made) -> Made:
        return obj if self._stored is None else self._stored(obj)

    def _show(self, made: Made, obj: Made) -> None:
        if made is not obj:
            shown = self.read(made)
            obj.clear()
            obj.update(shown)

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
