"""Finding the controllers that a hooks file declares."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from lamina.hooks.sdk import Hook


class Unloadable(Exception):
    """A hooks file that cannot be used; the text says why, with the file's own traceback where there is one."""


def load(path: Path) -> tuple[Hook, ...]:
    """Run a hooks file as Python would, and return the controllers in it, in order."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Unloadable(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as missing:
        if missing.filename == str(path):
            raise Unloadable(f"{path} is not there") from None
        raise Unloadable(told(missing, path)) from None
    except BaseException as wrong:
        raise Unloadable(told(wrong, path)) from None
    return found_in(vars(module).values(), path)


def found_in(values: Iterable[object], path: Path) -> tuple[Hook, ...]:
    """
    Return the controllers among some values; Unloadable for two of one name, and for none at all.

    One with a finalize or customize hook more takes the place of the one it was made from.
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
                f"{path} declares {value.name!r} twice; of one controller, each of its hooks is put on top "
                "of the one before"
            )
    if not hooks:
        raise Unloadable(f"{path} declares no controller: put @lamina.sync(...) above a function")
    return tuple(hooks.values())


def _extends(one: Hook, other: Hook) -> bool:
    """Say whether one is the other with more hooks, or the same."""
    return one.spec is other.spec and other.functions.items() <= one.functions.items()


def told(wrong: BaseException, path: Path) -> str:
    """Return an exception with the part of its traceback that begins in the user's file."""
    lines = traceback.format_exception(type(wrong), wrong, _from(wrong.__traceback__, path))
    return "".join(lines).strip()


def where(wrong: BaseException, path: Path) -> str:
    """Return the last line of a file that an exception came through, as `hooks.py line 3`, or nothing."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == str(path)
    ]
    return f"{path.name} line {lines[-1]}" if lines else ""


def _from(trace: TracebackType | None, path: Path) -> TracebackType | None:
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename != str(path):
        inner = inner.tb_next
    return inner or None
