"""
Pods of one template, told by their content.

A controller makes thousands of pods that differ in their own names, and in the
name that the server gives the volume with their token. What was looked for in
one of them and not found need not be looked for in the others.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from lamina.objects.types import Obj

_TOKEN: Final = re.compile("kube-api-access-[a-z0-9]{5}")
_ANY_TOKEN: Final = b"kube-api-access-\0"
"""What every such name is called here; no text in JSON holds a zero byte."""
_LONGEST, _MOST = 16 * 1024, 256


class Clear:
    """The contents of pods in which something was looked for in vain, the latest few hundred."""

    __slots__ = ("_contents",)

    def __init__(self) -> None:
        self._contents: set[bytes] = set()

    def __contains__(self, content: bytes | None) -> bool:
        return content in self._contents

    def add(self, content: bytes | None) -> None:
        if content is not None:
            if len(self._contents) >= _MOST:
                self._contents.clear()
            self._contents.add(content)


def content_of(pod: Obj) -> bytes | None:
    """Return what pods of one template have in common; None for one whose own name matters, or is too long."""
    spec = pod.get("spec") or {}
    volumes = spec.get("volumes") or ()
    if any("ephemeral" in volume for volume in volumes):
        # Its claims are called after the pod.
        return None
    try:
        content = orjson.dumps([(pod.get("metadata") or {}).get("annotations"), spec])
    except TypeError:
        return None
    tokens = [name for one in volumes if isinstance(name := one.get("name"), str) and _TOKEN.fullmatch(name)]
    if len(tokens) > 1:
        # Which of them is which matters then, and whether they are two.
        return None
    for name in tokens:
        content = content.replace(name.encode(), _ANY_TOKEN)
    return content if len(content) <= _LONGEST else None
