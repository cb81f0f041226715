"""
The log as a SQLite file: format and operations.

There is one table, append-only; the row number is the version. AUTOINCREMENT keeps the
largest number ever used, so that the version of a compacted row is not reused. Only the
number is indexed: keys and order are kept in memory.

A `LogFile` is used by one thread at a time. After an error it drops its connection and
opens another one for the next write.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lamina.errors import StoreError
from lamina.server.storage.store import Key, Row

APPLICATION = 0x4C414D49  # "LAMI", in the header of the file
FORMAT = 1

# Rows per statement. A batch up to this size is one call, which releases the GIL once instead
# of once per row.
_ROWS_PER_INSERT = 64
_JOURNAL_BYTES = 16 * 1024 * 1024
_MANY_FREE_PAGES = 1_000

_SCHEMA = (
    """
    CREATE TABLE log (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        bucket TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        deleted INTEGER NOT NULL,
        value BLOB NOT NULL
    )
    """,
    "CREATE TABLE compacted (version INTEGER NOT NULL)",
    "INSERT INTO compacted VALUES (0)",
    # The first row has number 2: an empty log is at version 1, from which a watch can start.
    "INSERT INTO sqlite_sequence VALUES ('log', 1)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


class LogFile:
    """An open log file, created if there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._durable: int | None = None
        with explain_errors(path):
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
                sync_directory(path.parent)
            path.chmod(0o600)
            try:
                connection = self._connect()
                if _is_empty(connection):
                    create(connection)
                check(connection, path)
            except BaseException:
                self._disconnect()
                raise

    def read(self) -> Iterator[Row]:
        """Return every row in the file, oldest first."""
        with explain_errors(self.path):
            yield from read(self._connect(), self.path)

    def version_marks(self) -> tuple[int, int]:
        """Return the largest version ever used, and the version up to which the log is compacted."""
        with explain_errors(self.path):
            version, compacted = version_marks(self._connect(), self.path)
        self._durable = version
        return version, compacted

    def insert(self, rows: Sequence[Row]) -> None:
        """Write rows; when this returns they are durable."""
        with self._transaction(len(rows) > _ROWS_PER_INSERT) as connection:
            insert(connection, rows)
        self._durable = rows[-1].version

    def compact(self, before: int) -> None:
        """Record up to which version the log is compacted."""
        with self._transaction(False) as connection:
            connection.execute("UPDATE compacted SET version = ? WHERE version < ?", (before, before))

    def erase(self, versions: Sequence[int]) -> None:
        """Erase rows."""
        with self._transaction(False) as connection:
            spots = ",".join("?" * len(versions))
            connection.execute(f"DELETE FROM log WHERE version IN ({spots})", versions)

    def shrink(self) -> bool:
        """Free some pages if most of the file is empty; return whether there are more."""
        with self._transaction(False) as connection:
            free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
            pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
            if free < _MANY_FREE_PAGES or free * 2 < pages:
                return False
            connection.execute(f"PRAGMA incremental_vacuum({_MANY_FREE_PAGES // 4})").fetchall()
            return True

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self, several: bool) -> Iterator[sqlite3.Connection]:
        """Yield the connection; a single statement is a transaction of its own."""
        try:
            connection = self._connect()
            if several:
                connection.execute("BEGIN IMMEDIATE")
            yield connection
            if several:
                connection.execute("COMMIT")
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            # Used by one thread at a time, but not always by the one that opened it.
            connection = connect(self.path, check_same_thread=False)
            try:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA fullfsync = ON")
                connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
                if self._durable is not None:
                    # The failed commit may be on the disk. Its writers got an error, and its versions are not
                    # reused.
                    connection.execute("DELETE FROM log WHERE version > ?", (self._durable,))
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def connect(path: Path, *, read_only: bool = False, check_same_thread: bool = True) -> sqlite3.Connection:
    """Return a connection that does not start transactions implicitly."""
    mode = "ro" if read_only else "rw"
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=check_same_thread,
    )


def create(connection: sqlite3.Connection) -> None:
    """Create the tables in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is no log, or that a later version of the program has written."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise _not_a_log(path)
    written: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if written > FORMAT:
        raise StoreError(
            f"{path} has format {written}, and this version of lamina reads up to format {FORMAT}",
            "use the version of lamina that wrote it, or a newer one",
        )


def read(connection: sqlite3.Connection, path: Path) -> Iterator[Row]:
    """Return every row, oldest first; repeated strings are interned."""
    columns = "version, bucket, namespace, name, deleted, value"
    for version, bucket, namespace, name, deleted, value in connection.execute(
        f"SELECT {columns} FROM log ORDER BY version"
    ):
        if not isinstance(value, bytes) or not value.startswith(b'{"metadata":') or value[-1:] != b"}":
            raise _damaged(path, f"row {version} is not an object")
        yield Row(Key(sys.intern(bucket), sys.intern(namespace), name), version, value, bool(deleted))


def version_marks(connection: sqlite3.Connection, path: Path) -> tuple[int, int]:
    """Return the largest version ever used, and the version up to which the log is compacted."""
    used = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    compacted = connection.execute("SELECT version FROM compacted").fetchone()
    newest = connection.execute("SELECT max(version) FROM log").fetchone()[0] or 0
    if used is None or compacted is None or used[0] < max(newest, compacted[0]):
        raise _damaged(path, "its largest version is missing")
    return used[0], compacted[0]


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    for start in range(0, len(rows), _ROWS_PER_INSERT):
        count = rows[start : start + _ROWS_PER_INSERT]
        cells: list[object] = []
        for row in count:
            cells += row.version, *row.key, row.deleted, row.value
        connection.execute(f"INSERT INTO log VALUES {','.join(['(?,?,?,?,?,?)'] * len(count))}", cells)


def write_copy(target: Path, rows: Sequence[Row], *, version: int, compacted: int) -> None:
    """Write rows to a new file in the format of the log."""
    with explain_errors(target), replacing(target) as unfinished, closing(connect(unfinished)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        create(connection)
        connection.execute("BEGIN")
        insert(connection, rows)
        set_marks(connection, version=version, compacted=compacted)
        connection.execute("COMMIT")


def copy(source: Path, target: Path) -> None:
    """Write a consistent copy of a log that may be written to meanwhile."""
    with explain_errors(target):
        if target.exists() and target.samefile(source):
            raise StoreError(f"{target} is the log itself", "name another file for the copy")
    with (
        explain_errors(target),
        replacing(target) as unfinished,
        closing(connect(source)) as log,
        closing(connect(unfinished)) as copied,
    ):
        log.backup(copied)
        # One file, without the journal of the original.
        copied.execute("PRAGMA journal_mode = DELETE")


def set_marks(connection: sqlite3.Connection, *, version: int, compacted: int) -> None:
    connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'log'", (version,))
    connection.execute("UPDATE compacted SET version = ?", (compacted,))


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces the target when it is complete and durable."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        handle = os.open(unfinished, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        unfinished.replace(target)
        sync_directory(target.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Make the directory entries durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and the operating system about a file to StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_a_log(path) from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise _damaged(path, str(error)) from error
        raise StoreError(f"{path} cannot be read or written: {error}", _HINT_DISK) from error
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read or written: {error.strerror or error}", _HINT_DISK
        ) from error


_HINT_DISK = "check whether the disk is full, and whether the folder and the file are writable"
_HINT_RESTORE = "restore a backup into an empty folder, or start with another one"


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the file is empty, as after an interrupted creation."""
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0


def _not_a_log(path: Path) -> StoreError:
    return StoreError(f"{path} is not a log of lamina, or its beginning is damaged", _HINT_RESTORE)


def _damaged(path: Path, how: str) -> StoreError:
    return StoreError(f"{path} is damaged: {how}", _HINT_RESTORE)
