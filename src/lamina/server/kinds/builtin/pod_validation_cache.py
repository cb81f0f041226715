"""
Cache of validated pods, by content.

A controller creates thousands of pods from one template, which differ only in their
names and in the generated name of the token volume. If validation found nothing in one
of them, the others need not be validated.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from lamina.objects.types import Obj

_TOKEN: Final = re.compile("kube-api-access-[a-z0-9]{5}")
_ANY_TOKEN: Final = b"kube-api-access-\0"
"""The replacement of generated names; JSON text has no zero byte."""
_LONGEST, _MOST = 16 * 1024, 256


class PodValidationCache:
    """The contents of pods that passed validation, limited to the latest few hundred."""

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
    """Return what pods of one template share; None if the pod's own name matters, or if it is too large."""
    spec = pod.get("spec") or {}
    volumes = spec.get("volumes") or ()
    if any("ephemeral" in volume for volume in volumes):
        # The names of ephemeral claims contain the pod's name.
        return None
    try:
        content = orjson.dumps([(pod.get("metadata") or {}).get("annotations"), spec])
    except TypeError:
        return None
    tokens = [name for one in volumes if isinstance(name := one.get("name"), str) and _TOKEN.fullmatch(name)]
    if len(tokens) > 1:
        # With several token volumes their names have to be distinguished.
        return None
    for name in tokens:
        content = content.replace(name.encode(), _ANY_TOKEN)
    return content if len(content) <= _LONGEST else None
