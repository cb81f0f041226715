"""
What is counted while controllers work; nothing, unless somebody counts.

Whoever works says what happens; who listens is not their business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lamina.core.plan import Action
from lamina.core.questions import Call
from lamina.objects.types import Ref


class Meter:
    """Told of what one controller does."""

    def begin(self, *, depth: Callable[[], int], oldest: Callable[[], list[float]], hands: int) -> None:
        """A controller comes: how to find out how many wait, and since when others are worked on."""

    def end(self) -> None:
        """The controller has gone."""

    def added(self) -> None:
        """A key began to wait."""

    def taken(self, waited: float) -> None:
        """A key is worked on, after so many seconds."""

    def worked(self, result: str, seconds: float) -> None:
        """
        A key was worked on: success, requeue_after, requeue or error.

        An error that is not tried again before something changes is `terminal`,
        and one that is a mistake of ours a `panic`.
        """

    def retried(self) -> None:
        """A key is to be tried again."""

    def wrote(self, action: Action) -> None:
        """The server took an action."""

    def stands(self, ref: Ref, progress: Mapping[str, int]) -> None:
        """So many targets of an owner stand where; none once it has gone."""

    def lost(self, cluster: str) -> None:
        """Nobody looks at a cluster any more, nor at the owners there."""


class CallMeter:
    """Told of calls to webhooks."""

    def began(self, call: Call) -> None:
        """A call goes out."""

    def found(self, call: Call, event: str, seconds: float) -> None:
        """On its way to a webhook something happened, so long after the call went out: dns_done, tls_done, …"""

    def ended(self, call: Call, outcome: str, seconds: float) -> None:
        """It was answered with that code, or failed."""
