"""
A folder outside the tree for what is expensive to make.

An entry is a folder whose name holds everything that decides its content, so
an entry is never changed and never stale. It is made beside its place and
renamed into it: half an entry is never seen, and two makers do no harm.
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
    Return the folder of an entry, made by `make` if nobody has made it yet.

    `make` is given an empty folder to fill. While it runs, others who want
    the same kind of entry wait for it instead of making it a second time.
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
