"""
Which informers there are: one for each thing that somebody follows, shared by all who follow it.

Those whose things are the same objects share a stream, too, if they come together. What should run is worked out elsewhere, again and again, as kinds come and go;
here it is compared with what does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.core.world import Change
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.runtime.informer import Informer
from lamina.runtime.memory import Gone, Shelf
from lamina.runtime.stream import Stream, Watcher
from lamina.runtime.subscriptions import Hear, Subscription

NO_KINDS = Kinds()


class Informers:
    """All informers of one cluster, and their streams, which run in the group they were given."""

    def __init__(self, watcher: Watcher, group: asyncio.TaskGroup, log: Logger, cluster: str = "") -> None:
        self.gone = Gone()
        self._watcher, self._group, self._log, self._cluster = watcher, group, log, cluster
        self._running: dict[Subscription, Informer] = {}
        self._streams: dict[Stream, asyncio.Task[None]] = {}
        self._listeners: dict[Subscription, Sequence[Hear]] = {}
        self._left: dict[object, Shelf] = {}

    def arrange(
        self, wanted: Mapping[Subscription, Sequence[Hear]], served: Kinds = NO_KINDS
    ) -> dict[Subscription, Informer]:
        """
        Follow exactly what is wanted, and tell exactly those who want it; return who follows what.

        An informer that is wanted no more leaves without a word: that a kind is
        not served any longer is no proof that its objects are gone. If the kind
        comes back, in another version perhaps, what was known of it is the start,
        and those who have gone in between are noticed. Of what is served and
        nobody wants, nothing is remembered.
        """
        if gone := {what: None for what in self._running if what not in wanted}:
            subjects = {what.subject for what in wanted}
            self._leave_behind(gone)
            for what in gone:
                informer = self._running.pop(what)
                informer.end()
                if informer.shelf.count and (what.subject in subjects or not what.named):
                    self._left[what.subject] = informer.shelf
        self._listeners = dict(wanted)
        new = [what for what in wanted if what not in self._running]
        for what in new:
            informer = self._running[what] = Informer(what, self._teller(what), self._cluster, self._log)
            if self._left and (left := self._left.pop(what.subject, None)):
                informer.inherit(left)
        self._follow([self._running[what] for what in new])
        self._left = {
            subject: shelf
            for subject, shelf in self._left.items()
            if served.preferred(shelf.kind.group_kind) is None
        }
        return dict(self._running)

    def forget(self) -> None:
        """Know nothing any more, once all streams have ended."""
        self._running, self._streams, self._listeners, self._left = {}, {}, {}, {}

    def _follow(self, informers: Sequence[Informer]) -> None:
        """Have these told what they are about, by as few streams as that takes."""
        those = {informer.what: informer for informer in informers}
        for what, carried in _together(those).items():
            stream = Stream(self._watcher, what, self._log, part=self._follow)
            for one in carried:
                stream.carry(those[one])
            self._streams[stream] = self._group.create_task(stream.run())

    def _leave_behind(self, gone: Collection[Subscription]) -> None:
        """Have those who go told nothing more; a stream ends with the last one it carries."""
        for stream, task in list(self._streams.items()):
            stream.leave_behind(gone)
            if not stream.is_needed:
                del self._streams[stream]
                task.cancel()

    def is_following(self, what: Subscription) -> bool:
        return what in self._running

    def following(self, what: Subscription) -> Informer:
        """Return who follows that; somebody has to have wanted it."""
        return self._running[what]

    async def settled(self) -> None:
        """Wait until everything that is followed has been seen once."""
        while waiting := [one for one in self._running.values() if not one.settled.is_set()]:
            await waiting[0].settled.wait()

    def _teller(self, what: Subscription) -> Hear:
        def tell(change: Change) -> None:
            self._bury(change)
            for hear in self._listeners.get(what, ()):
                try:
                    hear(change)
                except Exception:
                    # One listener's mistake must not cost the others the news.
                    self._log.exception("a change was not understood", object=str(change.ref))

        return tell

    def _bury(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is None:
            return
        uid = meta.uid(before)
        if after is not None and meta.uid(after) == uid:
            return
        # Of those who leave nobody behind, nobody will ask.
        if any(informer.shelf.owned_by(uid) for informer in self._running.values()):
            self.gone.add(uid)


def _together(those: Iterable[Subscription]) -> Mapping[Subscription, Sequence[Subscription]]:
    """Return which streams these take, and whom each of them carries: first the one that it is for."""
    carried: dict[Subscription, list[Subscription]] = {}
    of: dict[Kind, list[Subscription]] = {}
    # Those who want most come first.
    for what in sorted(those, key=lambda one: (one.metadata_only, one.named, one.namespace)):
        there = of.setdefault(what.kind, [])
        carrier = next((one for one in there if one.carries(what)), None)
        if carrier is None:
            there.append(what)
            carried[what] = [what]
        else:
            carried[carrier].append(what)
    return carried


def covering(informers: Mapping[GroupKind, Informer], ref: Ref) -> Informer | None:
    """Return the informer that sees what happens to an object, if one of these does."""
    informer = informers.get(GroupKind(ref.group, ref.kind))
    if informer is None:
        return None
    what = informer.what
    if (what.named and what.named != ref.name) or (what.namespace and what.namespace != ref.namespace):
        return None
    return informer
