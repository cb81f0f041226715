"""
Names for values that differ between runs.

Namespaces, uids, times and resource versions are never the same. A transcript has names
instead: those that the story chose for remembered values, otherwise `<uid>`, `<time>` and so
on. Versions are numbered in order of appearance, so a repeated `v1` means that there was no
write in between.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_VARIABLE = re.compile(r"\$(\w+)")
_REPEATED = re.compile(r"\$\{(.+?)\*(\d+)\}", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MICRO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_TIME = re.compile(r"\b(?!200[16])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CURRENT = re.compile(r"(?<=current: )\d+")
_COUNTER = re.compile(
    r"(?<=too old resource version: )\d+ \(\d+\)"
    r"|(?<=in the precondition \()\d+(?=\))|(?<=in record \()\d+(?=\))"
)
_RESULT = re.compile(r'(?<=patch: Invalid value: )"\{.*\}"(?=: )')
_TOKEN_VOLUME = re.compile(r"(?<=\bkube-api-access-)[a-z0-9]{5}\b")
_RUN = re.compile(r"(.)\1{49,}", re.DOTALL)
_LONGEST = 1200


class Names:
    """The names of values in one story."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)
        self._hidden = {name: known[name] for name in ("ns", "own")}
        self._versions: dict[str, str] = {}

    def remember(self, name: str, value: str) -> None:
        """Let `$name` stand for a value from now on."""
        self._known[name] = self._hidden[name] = value

    def fill(self, text: str) -> str:
        """Return a text with every known `$name` replaced, and `${x*3}` expanded; others are unchanged."""
        for _ in range(3):
            text = _VARIABLE.sub(lambda found: self._known.get(found[1], found[0]), text)
        return _REPEATED.sub(lambda found: found[1] * int(found[2]), text)

    def path(self, text: str) -> str:
        """Return a path with its names replaced, escaped for a URL."""
        return quote(self.fill(text), safe="/?&=%:;,.!~*'()[]+@$-_")

    def hide(self, text: str) -> str:
        """Return a text with names for all values that differ between runs."""
        text = _CURRENT.sub("<now>", text)
        for name, value in sorted(self._hidden.items(), key=lambda item: -len(item[1])):
            if value:
                # A version is a number, and must not be replaced inside another one.
                before = r"[\w.]" if value.isdigit() else r"\w"
                text = re.sub(rf"(?<!{before}){re.escape(value)}(?!\w)", f"${name}", text)
        text = _UUID.sub("<uid>", text)
        text = _TIME.sub("<time>", _MICRO.sub("<microtime>", text))
        text = _RESULT.sub("<object>", text)
        text = _COUNTER.sub("<now>", text)
        text = _TOKEN_VOLUME.sub("xxxxx", text)
        text = _RUN.sub(lambda found: f"({found[1]}*{len(found[0])})", text)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
        return text

    def version(self, value: object) -> str:
        """Return the name of a resource version."""
        if not isinstance(value, str):
            return repr(value)
        if not value.isdigit():
            return value
        return self._versions.setdefault(value, f"v{len(self._versions) + 1}")

    def named(self, value: Any) -> Any:
        """Return a JSON value with names for values that differ."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.named(one) for one in value]
        if isinstance(value, dict):
            return {
                self.hide(key): self.version(one) if key == "resourceVersion" else self.named(one)
                for key, one in value.items()
            }
        return value
