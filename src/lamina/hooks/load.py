"""Load the controllers that a hooks file declares."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from lamina.hooks.sdk import Hook


class Unloadable(Exception):
    """A hooks file that cannot be loaded; the message has the reason and the file's traceback, if any."""


def load(path: Path) -> tuple[Hook, ...]:
    """Run a hooks file as a Python program, and return its controllers in order."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Unloadable(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as missing:
        if missing.filename == str(path):
            raise Unloadable(f"{path} does not exist") from None
        raise Unloadable(traceback_text(missing, path)) from None
    except BaseException as error:
        raise Unloadable(traceback_text(error, path)) from None
    return found_in(vars(module).values(), path)


def found_in(values: Iterable[object], path: Path) -> tuple[Hook, ...]:
    """
    Return the controllers among some values; Unloadable for duplicate names, and if there are none.

    A controller with a finalize or customize hook replaces the one that it extends.
    """
    hooks: dict[str, Hook] = {}
    for value in values:
        if not isinstance(value, Hook):
            continue
        known = hooks.setdefault(value.name, value)
        if _extends(value, known):
            hooks[value.name] = value
        elif not _extends(known, value):
            raise Unloadable(
                f"{path} declares {value.name!r} twice; add each hook of a controller to the one before"
            )
    if not hooks:
        raise Unloadable(f"{path} declares no controller: put @lamina.sync(...) above a function")
    return tuple(hooks.values())


def _extends(one: Hook, other: Hook) -> bool:
    """Return whether a controller is the other one with more hooks, or the same."""
    return one.spec is other.spec and other.functions.items() <= one.functions.items()


def traceback_text(error: BaseException, path: Path) -> str:
    """Return an exception as text, with the part of its traceback that begins in the user's file."""
    lines = traceback.format_exception(type(error), error, _from(error.__traceback__, path))
    return "".join(lines).strip()


def where(error: BaseException, path: Path) -> str:
    """Return the last line of a file in an exception's traceback, as `hooks.py line 3`, or an empty string."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f"{path.name} line {lines[-1]}" if lines else ""


def _from(trace: TracebackType | None, path: Path) -> TracebackType | None:
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename != str(path):
        inner = inner.tb_next
    return inner or None
