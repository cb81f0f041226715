"""
The durable log: a folder with a SQLite file, and one thread that writes to it.

Reads never use the file: all current rows and the history are in memory. The file is read
once, when it is opened.
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
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.log_store import ROW_LIMIT, LogStore
from lamina.server.storage.sqlite_file import (
    LogFile,
    check,
    connect,
    copy,
    explain_errors,
    read,
    replacing,
    set_marks,
    version_marks,
)
from lamina.server.storage.store import Row

FILE = "log.db"
LOCK = "lock"

LEAP = 1_000_000_000
"""Distance of a restored log's versions from the copy's: fewer versions were written after the copy."""

_ERASE_BATCH = 200  # rows erased in one step, so that writes are not delayed


class SqliteStore(LogStore):
    """A `Store` in a folder of its own."""

    def __init__(self, file: LogFile, lock: int, *, window: Window | None, row_limit: int) -> None:
        super().__init__(window=window, row_limit=row_limit)
        self._file = file
        self._lock = lock
        self._copying = asyncio.Lock()
        self._writer = _Writer(file)
        version, compacted = file.version_marks()
        self._load(file.read(), version=version, compacted=compacted)
        self._writer.start()

    @classmethod
    def open(cls, data_dir: Path, *, window: Window | None = None, row_limit: int = ROW_LIMIT) -> SqliteStore:
        """
        Return the store in a folder, created if there is none.

        Raises StoreError if another process has it open, or if the file is no log, is damaged,
        or was written by a later version. Reads the whole file; needs no event loop, so it
        can be called in a thread.
        """
        lock = _acquire_lock(data_dir)
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
    """The thread that writes. Writes take precedence over erasing."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Only the thread uses these. What could not be erased is retried at the next compaction.
        self._stale: list[int] = []
        self._left_over: list[int] = []
        self._has_free_pages = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the queued writes, drop erasing, and close the file."""
        self._jobs.put(None)
        self._thread.join()

    def write(
        self, rows: Sequence[Row], loop: asyncio.AbstractEventLoop, done: Callable[[StoreError | None], None]
    ) -> None:
        """Write a batch, and call `done` on the event loop."""

        def job() -> None:
            failed: StoreError | None = None
            try:
                self._file.insert(rows)
            except Exception as error:
                failed = StoreError(
                    f"{self._file.path} cannot be written: {error}",
                    "check whether the disk is full; the next write is attempted again",
                )
            with suppress(RuntimeError):  # the event loop has ended, and with it the waiting writers
                loop.call_soon_threadsafe(done, failed)

        self._jobs.put(job)

    def forget(self, before: int, versions: Sequence[int]) -> None:
        """Record a compaction, then erase rows in small steps."""

        def job() -> None:
            self._stale += [*self._left_over, *versions]
            self._left_over = []
            self._has_free_pages = True
            self._try_maintenance(lambda: self._file.compact(before))

        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            if self._jobs.empty() and (self._stale or self._has_free_pages):
                self._try_maintenance(self._maintain)
                continue
            job = self._jobs.get()
            if job is None:
                break
            job()
        self._file.close()

    def _maintain(self) -> None:
        if self._stale:
            self._file.erase(self._stale[-_ERASE_BATCH:])
            del self._stale[-_ERASE_BATCH:]
        else:
            self._has_free_pages = self._file.shrink()

    def _try_maintenance(self, work: Callable[[], None]) -> None:
        """Run maintenance; an I/O error postpones the rest to the next compaction."""
        try:
            work()
        except Exception as error:
            self._left_over += self._stale
            self._stale = []
            self._has_free_pages = False
            with suppress(OSError):  # a full disk may refuse this log line as well
                log.warning("log not compacted on disk", file=str(self._file.path), error=str(error))


def restore(source: Path, data_dir: Path) -> None:
    """
    Create a store in an empty folder from a copy that `backup` has written.

    The log may have continued after the copy was made, and clients may hold its versions.
    So the restored log continues far behind them, and is marked as compacted up to there:
    watches start again instead of waiting for a version with another meaning.
    """
    lock = _acquire_lock(data_dir)
    try:
        target = data_dir / FILE
        if target.exists():
            raise StoreError(
                f"{data_dir} already contains a log", "choose an empty folder, or move the old log away"
            )
        if not source.is_file():
            raise StoreError(f"{source} is not a file", "name a file written by `lamina backup`")
        with explain_errors(source), closing(connect(source, read_only=True)) as copied:
            check(copied, source)
            version, _ = version_marks(copied, source)
            for problems in copied.execute("PRAGMA quick_check(1)"):
                if problems != ("ok",):
                    raise StoreError(f"{source} is damaged: {problems[0]}", "use another copy")
            for _ in read(copied, source):
                pass
            with (
                explain_errors(target),
                replacing(target) as unfinished,
                closing(connect(unfinished)) as temporary,
            ):
                copied.backup(temporary)
                temporary.execute("PRAGMA journal_mode = DELETE")
                temporary.execute("BEGIN")
                set_marks(temporary, version=version + LEAP, compacted=version + LEAP)
                temporary.execute("COMMIT")
    finally:
        os.close(lock)


def _acquire_lock(data_dir: Path) -> int:
    """Return the open lock file of a folder, created if there is none; closing it releases the lock."""
    with explain_errors(data_dir):
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
