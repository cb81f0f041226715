"""A canonical form for objects, and short safe marks made of it."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes random names of: no vowels, no 0, 1 or 3, so that no word comes out by accident."""


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
    Return a short mark that can be part of a name or a label.

    Equal values have equal marks; equal marks prove nothing.
    """
    number = int.from_bytes(hashlib.sha256(canonical(value)).digest(), "big")
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(SAFE))
        letters.append(SAFE[letter])
    return "".join(letters)


def safe(text: str) -> str:
    """Return a text with each character turned into a safe one, as Kubernetes does with its own hashes."""
    return "".join(SAFE[ord(character) % len(SAFE)] for character in text)
