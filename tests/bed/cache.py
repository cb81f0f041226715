"""
A cache folder outside the tree for expensive results.

The name of an entry contains everything that its content depends on, so an entry is never
changed and never stale. It is built in a temporary folder and renamed: an existing entry is
complete, and concurrent builds do no harm.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder named by LAMINA_CACHE, or `lamina` in the user's cache folder."""
    if named := os.environ.get("LAMINA_CACHE"):
        return Path(named)
    if home := os.environ.get("XDG_CACHE_HOME"):
        return Path(home) / "lamina"
    return Path.home() / ".cache" / "lamina"


def remembered(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """
    Return the folder of an entry, built by `make` if it does not exist.

    `make` gets an empty folder. Concurrent callers for the same kind of entry wait
    instead of building it again.
    """
    shelf = cache_folder() / kind
    entry = shelf / key
    if entry.is_dir():
        return entry
    shelf.mkdir(parents=True, exist_ok=True)
    with _alone(shelf / ".lock"):
        if entry.is_dir():
            return entry
        unfinished = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=shelf))
        try:
            make(unfinished)
            unfinished.chmod(0o755)
            unfinished.rename(entry)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return entry


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
