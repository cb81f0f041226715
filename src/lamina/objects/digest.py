"""The canonical JSON of a value, and hashes of it."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of Kubernetes' random names: without vowels and 0, 1 and 3, so that no words appear by accident."""


def canonical(value: Any) -> bytes:
    """Return JSON that is the same for equal values, whatever order their keys were given in."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(value: Any) -> str:
    """Return a SHA-256 in hexadecimal, equal for equal values."""
    return sha256(canonical(value))


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def short(value: Any, length: int = 10) -> str:
    """
    Return a short hash that can be part of a name or a label.

    Equal values have equal hashes; different values may collide.
    """
    number = int.from_bytes(hashlib.sha256(canonical(value)).digest(), "big")
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(SAFE))
        letters.append(SAFE[letter])
    return "".join(letters)


def safe(text: str) -> str:
    """Return a text with each character mapped into the safe alphabet, as `rand.SafeEncodeString` does."""
    return "".join(SAFE[ord(character) % len(SAFE)] for character in text)
