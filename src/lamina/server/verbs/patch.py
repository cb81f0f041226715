"""
The patch verb: JSON patch, merge patch, strategic merge patch and apply.

A patch is computed on the newest accepted version and admitted like an update, so that it conflicts only if
it names a resourceVersion itself.
"""

from __future__ import annotations

from typing import Any

import orjson

from lamina.errors import BadRequest, Cause, Invalid
from lamina.merge.go_format import plain
from lamina.merge.patches import json_patch, merge_patch, strategic_merge
from lamina.objects.go_quote import quoted
from lamina.objects.types import Made
from lamina.server import status_errors
from lamina.server.admission.options import WriteOptions, write_options
from lamina.server.admission.pipeline import admit_update, decode_as
from lamina.server.admission.preconditions import check_version
from lamina.server.codec import body as bodies
from lamina.server.codec.response import decode_row, object_response, typed, versioned_json
from lamina.server.codec.typemeta import check_unchanged, unregistered
from lamina.server.context import ServerContext
from lamina.server.decode_errors import DecodeError, converter_error
from lamina.server.http.request import Request, Response
from lamina.server.kinds.kind import Findings, Kind
from lamina.server.kinds.target import Target
from lamina.server.storage.store import Row
from lamina.server.verbs.apply import apply
from lamina.server.verbs.update import store_update

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def patch(context: ServerContext, request: Request, target: Target) -> Response:
    """Return 200 with the patched object, 201 if an apply created it."""
    media = patch_type(request, target.kind)
    options = write_options(request, "PatchOptions")
    if media == APPLY:
        return await apply(context, request, target, options)
    if "force" in request.parameters:
        raise status_errors.invalid_options(
            "PatchOptions",
            "force",
            "FieldValueForbidden",
            "Forbidden: may not be specified for non-apply patch",
        )
    row = context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    findings = Findings()
    change = parse_patch(request.body, media, findings)
    old = orjson.loads(versioned_json(target.kind, row))
    patched = patched_object(target.kind, typed(target.kind, old), change, media)
    new = _decode_patched(
        request, target, patched, _PatchQuote(request, target.kind, row, media), findings, options
    )
    check_version(target, new["metadata"].get("resourceVersion", ""), str(row.version), required=True)
    new = await admit_update(context, request, target, new, old, options)
    row = await store_update(context, target, new, old, row, options)
    return object_response(request, target.kind, versioned_json(target.kind, row), context.now())


def patch_type(request: Request, kind: Kind) -> str:
    """Return the media type of the patch; raises for one that the kind does not support."""
    accepted = (
        (JSON_PATCH, MERGE_PATCH, APPLY) if kind.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)
    )
    media = bodies.media_type(request.headers.get("content-type", ""))
    if media not in accepted:
        raise bodies.unsupported(", ".join(accepted)) if kind.custom else bodies.unsupported_by_route()
    return media


def parse_patch(data: bytes, media: str, findings: Findings) -> Any:
    """Return the patch in a body: a list of operations, or a partial object."""
    opening = "" if media == STRATEGIC else "error decoding patch: "
    try:
        change = bodies.load(data)
    except DecodeError as problem:
        raise BadRequest(f"{opening}{problem.why}") from None
    if media == JSON_PATCH:
        _find_unknown_fields(change, findings)
        return change
    if change is None and media == MERGE_PATCH:
        raise BadRequest("Invalid JSON Patch")
    if not bodies.round_trips(change, data):
        bodies.find_duplicates(data, findings)
    return change


def _find_unknown_fields(operations: Any, findings: Findings) -> None:
    """Report unknown fields in the operations of a JSON patch."""
    for index, step in enumerate(operations if isinstance(operations, list) else ()):
        for field in step if isinstance(step, dict) else ():
            if field not in ("op", "path", "from", "value"):
                findings.sentences.append(f'json patch unknown field "[{index}].{field}"')


def patched_object(kind: Kind, current: Made, change: Any, media: str) -> Made:
    """Return the patched object; raises for a patch that cannot be applied."""
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


class _PatchQuote:
    """
    The value that kube-apiserver quotes in the error for an invalid patch.

    Computed again when it is needed: few patches are invalid, and decoding changes the patched object in
    place.
    """

    def __init__(self, request: Request, kind: Kind, row: Row, media: str) -> None:
        self._request, self._kind, self._row, self._media = request, kind, row, media
        self.is_strategic = media == STRATEGIC

    @property
    def quoted_value(self) -> str:
        """Return the patched object as JSON or, for a strategic merge patch, the patch itself."""
        if self.is_strategic:
            return plain(parse_patch(self._request.body, self._media, Findings()))
        return self.patched_json.decode()

    @property
    def patched_json(self) -> bytes:
        change = parse_patch(self._request.body, self._media, Findings())
        current = decode_row(self._kind, self._row)
        patched = patched_object(self._kind, current, change, self._media)
        return orjson.dumps(patched, option=orjson.OPT_SORT_KEYS)


def _decode_patched(
    request: Request,
    target: Target,
    patched: Made,
    quote: _PatchQuote,
    findings: Findings,
    options: WriteOptions,
) -> Made:
    """Return the patched object decoded as its kind."""
    kind = target.kind
    _check_type(kind, patched, quote, target.name)
    try:
        new = decode_as(kind, patched, findings)
    except DecodeError as problem:
        why = converter_error(problem.why) if quote.is_strategic else problem.why
        raise patch_error(quote.quoted_value, why) from None
    request.empties = findings.empties
    if findings.sentences:
        if not kind.custom:
            findings.sentences = bodies.sort_findings(quote.patched_json, findings.sentences)
        _report_findings(request, quote, findings, options.validation)
    metadata = new.setdefault("metadata", {})
    if not metadata.get("name"):
        raise status_errors.missing_name(target.name)
    if metadata["name"] != target.name:
        raise status_errors.name_mismatch(metadata["name"], target.name)
    if target.kind.namespaced and metadata.get("namespace") != target.namespace:
        raise status_errors.namespace_mismatch()
    return new


def _check_type(kind: Kind, patched: Made, quote: _PatchQuote, name: str) -> None:
    api_version, named = patched.pop("apiVersion", None), patched.pop("kind", None)
    if kind.custom:
        if not named:
            raise patch_error(quote.quoted_value, f"Object 'Kind' is missing in '{quote.quoted_value}'")
        check_unchanged(kind, str(api_version or ""), str(named), name)
        return
    api_version, named = api_version or kind.api_version, named or kind.kind
    if (api_version, named) == (kind.api_version, kind.kind):
        return
    if api_version != kind.api_version:
        raise patch_error(quote.quoted_value, unregistered(str(api_version), str(named)))
    raise BadRequest(f"kind may not be changed: it is {kind.kind}")


def _report_findings(request: Request, quote: _PatchQuote, findings: Findings, validation: str) -> None:
    if validation == "Warn":
        for sentence in findings.warnings:
            request.warn(sentence)
    elif validation == "Strict":
        raise patch_error(quote.quoted_value, f"strict decoding error: {', '.join(findings.sentences)}")


def patch_error(quoted_value: str, why: str) -> Invalid:
    """Return the error for a patch whose result is not a valid object; `quoted_value` is quoted in it."""
    cause = Cause("FieldValueInvalid", f"Invalid value: {quoted(quoted_value)}: {why}", "patch")
    error = Invalid(f' "" is invalid: patch: {cause.message}', causes=[cause])
    error.shows_details = True
    return error
