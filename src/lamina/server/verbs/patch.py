"""
Change an object by a patch: JSON patch, merge patch, strategic merge patch.

A patch is worked out against the newest accepted version and judged like an
update. Only one that names a version itself can lose a race.
"""

from __future__ import annotations

from typing import Any

import orjson

from lamina.errors import BadRequest, Cause, Invalid
from lamina.merge.patches import json_patch, merge_patch, strategic_merge
from lamina.merge.wording import plain
from lamina.objects.printing import quoted
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import admit_update, decode_as
from lamina.server.declared import check_unchanged, unregistered
from lamina.server.kind import Findings, Kind
from lamina.server.misread import Misread, restored
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.preconditions import check_version
from lamina.server.rendering import decoded, object_answer, shown, typed
from lamina.server.request import Answer, Request
from lamina.server.store import Row
from lamina.server.verbs.apply import apply
from lamina.server.verbs.update import put

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def patch(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer 200 with the object as it now is, 201 where an apply made it."""
    media = patch_type(request, target.kind)
    options = write_options(request, "PatchOptions")
    if media == APPLY:
        return await apply(plane, request, target, options)
    if "force" in request.parameters:
        raise words.invalid_options(
            "PatchOptions",
            "force",
            "FieldValueForbidden",
            "Forbidden: may not be specified for non-apply patch",
        )
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    findings = Findings()
    change = parse_patch(request.body, media, findings)
    old = orjson.loads(shown(target.kind, row))
    patched = patched_object(target.kind, typed(target.kind, old), change, media)
    new = _decoded(request, target, patched, _Told(request, target.kind, row, media), findings, options)
    check_version(target, new["metadata"].get("resourceVersion", ""), str(row.version), required=True)
    new = await admit_update(plane, request, target, new, old, options)
    row = await put(plane, target, new, old, row, options)
    return object_answer(request, target.kind, shown(target.kind, row), plane.now())


def patch_type(request: Request, kind: Kind) -> str:
    """Return which of the patch formats the body is in; raises for any the kind does not take."""
    accepted = (
        (JSON_PATCH, MERGE_PATCH, APPLY) if kind.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)
    )
    media = bodies.media_type(request.headers.get("content-type", ""))
    if media not in accepted:
        raise bodies.unsupported(", ".join(accepted)) if kind.custom else bodies.unrouted()
    return media


def parse_patch(data: bytes, media: str, findings: Findings) -> Any:
    """Return the patch in a body: a list of operations, or a partial object."""
    opening = "" if media == STRATEGIC else "error decoding patch: "
    try:
        change = bodies.load(data)
    except Misread as problem:
        raise BadRequest(f"{opening}{problem.why}") from None
    if media == JSON_PATCH:
        _find_odd_fields(change, findings)
        return change
    if change is None and media == MERGE_PATCH:
        raise BadRequest("Invalid JSON Patch")
    if not bodies.is_printed_back(change, data):
        bodies.find_duplicates(data, findings)
    return change


def _find_odd_fields(operations: Any, findings: Findings) -> None:
    """Report what an operation of a JSON patch says that means nothing."""
    for index, step in enumerate(operations if isinstance(operations, list) else ()):
        for field in step if isinstance(step, dict) else ():
            if field not in ("op", "path", "from", "value"):
                findings.sentences.append(f'json patch unknown field "[{index}].{field}"')


def patched_object(kind: Kind, current: Made, change: Any, media: str) -> Made:
    """Return what the patch makes of an object; raises for a patch that does not fit."""
    result: Any
    if media == JSON_PATCH:
        result = json_patch(current, change)
    elif media == MERGE_PATCH:
        result = merge_patch(current, change)
    else:
        result = strategic_merge(current, change, kind.schema)
    if not isinstance(result, dict):
        raise BadRequest("the patch does not leave an object")
    return result


class _Told:
    """
    What is quoted where a patch is refused.

    Worked out once more where it is needed: few patches are refused, and who
    decodes an object makes it its own.
    """

    def __init__(self, request: Request, kind: Kind, row: Row, media: str) -> None:
        self._request, self._kind, self._row, self._media = request, kind, row, media
        self.is_strategic = media == STRATEGIC

    @property
    def blamed(self) -> str:
        """Return what the patch makes or, of a strategic one, the patch itself."""
        if self.is_strategic:
            return plain(parse_patch(self._request.body, self._media, Findings()))
        return self.made.decode()

    @property
    def made(self) -> bytes:
        """Return what the patch makes."""
        change = parse_patch(self._request.body, self._media, Findings())
        current = decoded(self._kind, self._row)
        patched = patched_object(self._kind, current, change, self._media)
        return orjson.dumps(patched, option=orjson.OPT_SORT_KEYS)


def _decoded(
    request: Request, target: Target, patched: Made, told: _Told, findings: Findings, options: WriteOptions
) -> Made:
    """Return the patched object as its kind reads it."""
    kind = target.kind
    _check_type(kind, patched, told, target.name)
    try:
        new = decode_as(kind, patched, findings)
    except Misread as problem:
        why = restored(problem.why) if told.is_strategic else problem.why
        raise patch_refused(told.blamed, why) from None
    request.empties = findings.empties
    if findings.sentences:
        if not kind.custom:
            findings.sentences = bodies.in_order(told.made, findings.sentences)
        _judge(request, told, findings, options.validation)
    metadata = new.setdefault("metadata", {})
    if not metadata.get("name"):
        raise words.nameless(target.name)
    if metadata["name"] != target.name:
        raise words.misnamed(metadata["name"], target.name)
    if target.kind.namespaced and metadata.get("namespace") != target.namespace:
        raise words.misplaced()
    return new


def _check_type(kind: Kind, patched: Made, told: _Told, name: str) -> None:
    api_version, named = patched.pop("apiVersion", None), patched.pop("kind", None)
    if kind.custom:
        if not named:
            raise patch_refused(told.blamed, f"Object 'Kind' is missing in '{told.blamed}'")
        check_unchanged(kind, str(api_version or ""), str(named), name)
        return
    api_version, named = api_version or kind.api_version, named or kind.kind
    if (api_version, named) == (kind.api_version, kind.kind):
        return
    if api_version != kind.api_version:
        raise patch_refused(told.blamed, unregistered(str(api_version), str(named)))
    raise BadRequest(f"kind may not be changed: it is {kind.kind}")


def _judge(request: Request, told: _Told, findings: Findings, validation: str) -> None:
    if validation == "Warn":
        for sentence in findings.warnings:
            request.warn(sentence)
    elif validation == "Strict":
        raise patch_refused(told.blamed, f"strict decoding error: {', '.join(findings.sentences)}")


def patch_refused(blamed: str, why: str) -> Invalid:
    """Say that what a patch makes is no object of the kind; `blamed` is what it makes, or a strategic one itself."""
    cause = Cause("FieldValueInvalid", f"Invalid value: {quoted(blamed)}: {why}", "patch")
    refused = Invalid(f' "" is invalid: patch: {cause.message}', causes=[cause])
    refused.shows_details = True
    return refused
