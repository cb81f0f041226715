"""Drives a reconcile: performs each of its effects, and sends the reply back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import Any, TypeVar

from lamina.errors import LaminaError

Effect = TypeVar("Effect")
Value = TypeVar("Value")


async def drive(
    steps: Generator[Effect, Any, Value], perform: Callable[[Effect], Awaitable[object]]
) -> Value:
    """Return what a reconcile comes to; errors of ours are thrown into it, any other ends it."""
    with closing(steps):
        try:
            effect = next(steps)
            while True:
                try:
                    reply = await perform(effect)
                except LaminaError as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(reply)
        except StopIteration as ended:
            value: Value = ended.value
            return value
