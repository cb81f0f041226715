"""
The durable log: a folder with a SQLite file in it, and the one thread that writes to it.

Reading never touches the file: all that is current and all that is history is
in memory. Opening reads the file once.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue

from lamina.errors import StoreError
from lamina.logs import log
from lamina.server.bucket import Window
from lamina.server.log import ROW_LIMIT, Log
from lamina.server.logfile import (
    LogFile,
    check,
    connect,
    copy,
    explained,
    marks,
    read,
    replaced,
    set_marks,
)
from lamina.server.store import Row

FILE = "log.db"
LOCK = "lock"

LEAP = 1_000_000_000
"""How far the versions of a restored log are ahead of the copy's: nobody wrote more since it was made."""

_AT_ONCE = 200  # rows erased in one go, between which writers have their turn


class SqliteStore(Log):
    """A `Store` in a folder of its own."""

    def __init__(self, file: LogFile, lock: int, *, window: Window | None, row_limit: int) -> None:
        super().__init__(window=window, row_limit=row_limit)
        self._file = file
        self._lock = lock
        self._copying = asyncio.Lock()
        self._writer = _Writer(file)
        version, compacted = file.marks()
        self._load(file.read(), version=version, compacted=compacted)
        self._writer.start()

    @classmethod
    def open(cls, data_dir: Path, *, window: Window | None = None, row_limit: int = ROW_LIMIT) -> SqliteStore:
        """
        Return the store in a folder, made if there is none.

        Raises StoreError when another process has it open, and when the file is
        not a log, is damaged, or was written by a later version. Reads the
        whole file; needs no event loop, so it may be called in a thread.
        """
        lock = _take(data_dir)
        try:
            file = LogFile(data_dir / FILE)
            try:
                return cls(file, lock, window=window, row_limit=row_limit)
            except BaseException:
                file.close()
                raise
        except BaseException:
            os.close(lock)
            raise

    async def backup(self, target: Path) -> None:
        async with self._copying:
            if self._closed:
                raise StoreError("the log is closed")
            await asyncio.to_thread(copy, self._file.path, target)

    def _commit(self, rows: Sequence[Row]) -> None:
        self._writer.write(rows, asyncio.get_running_loop(), self._committed)

    def _forget(self, before: int, versions: Sequence[int]) -> None:
        self._writer.forget(before, versions)

    async def _release(self) -> None:
        async with self._copying:
            await asyncio.to_thread(self._writer.stop)
            os.close(self._lock)


class _Writer:
    """The thread that writes. What writers wait for goes first; erasing fills the time between."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Only the thread looks at these. What could not be erased waits for the next compaction.
        self._stale: list[int] = []
        self._left_over: list[int] = []
        self._roomy = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Do what was asked for so far, but for erasing, and close the file."""
        self._jobs.put(None)
        self._thread.join()

    def write(
        self, rows: Sequence[Row], loop: asyncio.AbstractEventLoop, done: Callable[[StoreError | None], None]
    ) -> None:
        """Write a batch, and have `done` called on the loop."""

        def job() -> None:
            failed: StoreError | None = None
            try:
                self._file.insert(rows)
            except Exception as error:
                failed = StoreError(
                    f"{self._file.path} cannot be written: {error}",
                    "see whether the disk is full; the next write is tried again",
                )
            with suppress(RuntimeError):  # the loop is gone, and with it whoever waited
                loop.call_soon_threadsafe(done, failed)

        self._jobs.put(job)

    def forget(self, before: int, versions: Sequence[int]) -> None:
        """Remember a compaction, then erase rows a few at a time."""

        def job() -> None:
            self._stale += [*self._left_over, *versions]
            self._left_over = []
            self._roomy = True
            self._tolerate(lambda: self._file.compact(before))

        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            if self._jobs.empty() and (self._stale or self._roomy):
                self._tolerate(self._tidy)
                continue
            job = self._jobs.get()
            if job is None:
                break
            job()
        self._file.close()

    def _tidy(self) -> None:
        if self._stale:
            self._file.erase(self._stale[-_AT_ONCE:])
            del self._stale[-_AT_ONCE:]
        else:
            self._roomy = self._file.shrink()

    def _tolerate(self, work: Callable[[], None]) -> None:
        """Do some tidying; if the disk refuses, leave the rest for another time."""
        try:
            work()
        except Exception as error:
            self._left_over += self._stale
            self._stale = []
            self._roomy = False
            with suppress(OSError):  # a disk that is full may refuse this line as well
                log.warning("log not compacted on disk", file=str(self._file.path), error=str(error))


def restore(source: Path, data_dir: Path) -> None:
    """
    Make a store in an empty folder from a copy that `backup` has written.

    The log may have gone on after the copy was made, and its versions are in
    the memory of clients. So the restored one goes on far behind them, and says
    that all before is compacted: who watches starts afresh instead of waiting
    for a version that means something else now.
    """
    lock = _take(data_dir)
    try:
        target = data_dir / FILE
        if target.exists():
            raise StoreError(
                f"{data_dir} holds a log already", "choose an empty folder, or move the old log away"
            )
        if not source.is_file():
            raise StoreError(f"{source} is not a file", "name a file that `lamina backup` has written")
        with explained(source), closing(connect(source, read_only=True)) as copied:
            check(copied, source)
            version, _ = marks(copied, source)
            for finding in copied.execute("PRAGMA quick_check(1)"):
                if finding != ("ok",):
                    raise StoreError(f"{source} is damaged: {finding[0]}", "use another copy")
            for _ in read(copied, source):
                pass
            with explained(target), replaced(target) as unfinished, closing(connect(unfinished)) as made:
                copied.backup(made)
                made.execute("PRAGMA journal_mode = DELETE")
                made.execute("BEGIN")
                set_marks(made, version=version + LEAP, compacted=version + LEAP)
                made.execute("COMMIT")
    finally:
        os.close(lock)


def _take(data_dir: Path) -> int:
    """Return the open lock of a folder, made if there is none; closing it, or dying, gives it back."""
    with explained(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise StoreError(
            f"{data_dir} is in use by {f'process {holder}' if holder else 'another process'}",
            "stop it with `lamina down`, or choose another folder with --data",
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock
