"""Prints previews of manifests, as text and as data for JSON and YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lamina.cli.dry_run_apply import Applied
from lamina.cli.output.tables import table
from lamina.core.rollout.preview import ChangeKind, Preview, TargetChange
from lamina.objects import meta
from lamina.objects.types import Made

COLUMNS = ("STEP", "TARGET", "CHANGE", "REVISION", "MESSAGE")
_NOT_ROLLED_OUT = "not rolled out by Lamina"
_NOT_KNOWN = "it is not known whether Lamina rolls it out"
_LEAVING = (ChangeKind.RELEASE, ChangeKind.DELETE)


class AppliedPreview(Struct, frozen=True):
    """
    An object of a manifest, and the preview of its rollout; None where no family rolls it out.

    `unread` is what may not be read, where it is not known whether one does.
    """

    applied: Applied
    preview: Preview | None = None
    unread: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """Return why there is no preview, or the reason of the first pass."""
        if self.preview is not None:
            return self.preview.because
        return f"{_NOT_KNOWN}: {'; '.join(self.unread)}" if self.unread else _NOT_ROLLED_OUT


def previews_text(previews: Sequence[AppliedPreview]) -> str:
    """Return a headline for each object, and below that of an owner the table of its changes."""
    blocks: list[str] = []
    was_table = False
    for one in previews:
        changes = one.preview.changes if one.preview is not None else ()
        is_table = bool(changes)
        if blocks and (is_table or was_table):
            blocks.append("")
        blocks += _lines(one)
        was_table = is_table
    return "\n".join(blocks)


def _lines(one: AppliedPreview) -> Iterator[str]:
    """Yield the lines of one object."""
    preview, ref = one.preview, meta.ref(one.applied.obj)
    namespace = f" in namespace {ref.namespace}" if ref.namespace else ""
    name = f"{ref.kind.lower()}/{ref.name}{namespace} {one.applied.how} (dry run)"
    if preview is None:
        yield f"{name}, {one.because}"
        return
    goal = f", revision {preview.goal}" if preview.goal else ""
    said = [] if preview.changes else ["nothing would change"]
    said += [preview.because] if preview.because else []
    yield f"{name}{goal}: {'; '.join(said)}" if said else f"{name}{goal}"
    if preview.failure is not None:
        yield f"reports an error: {preview.failure}"
    if preview.changes:
        yield table(COLUMNS, [_row(change, preview.goal) for change in preview.changes])


def _row(change: TargetChange, goal: int) -> tuple[str, ...]:
    """Return the row of a change; `-` where it has no step or no revision."""
    numbers = dict.fromkeys(number for number in (change.revision, _to_revision(change, goal)) if number)
    return (
        str(change.step) if change.step else "-",
        change.target,
        change.kind,
        " -> ".join(map(str, numbers)) or "-",
        change.message,
    )


def _to_revision(change: TargetChange, goal: int) -> int:
    """Return the revision that a target would go to, 0 where it has none or is released or deleted."""
    return 0 if change.kind in _LEAVING else goal


def preview_data(one: AppliedPreview) -> Made:
    """Return the preview of one object as data; all objects have the same fields."""
    preview, ref = one.preview, meta.ref(one.applied.obj)
    failure = preview.failure if preview is not None else None
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "applied": str(one.applied.how),
        "rolledOut": None if one.unread else preview is not None,
        "revision": preview.goal if preview is not None else 0,
        "because": one.because,
        "failure": str(failure) if failure is not None else None,
        "changes": [_change(change, preview.goal) for change in preview.changes]
        if preview is not None
        else [],
    }


def _change(change: TargetChange, goal: int) -> Made:
    return {
        "step": change.step,
        "target": change.target,
        "change": str(change.kind),
        "revision": change.revision,
        "toRevision": _to_revision(change, goal),
        "message": change.message,
    }
