"""
The form of a response in a transcript.

An error is printed whole. An object is printed without the fields that the server sets on
every object, unless the step selects parts with `?`:

    *           everything
    code        only the status code
    body        the undecoded body
    managed     field ownership, abbreviated
    header:X    a header
    a.b[0].c    a field; `[*]` is every element; a dot in a key is written `\\.`
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.bed.wire import Answer
from tests.conformance.transcript.naming import Names

_STAMPED = ("creationTimestamp", "managedFields", "namespace", "uid")
_WARNING = re.compile(r'^299 - "(.*)"$', re.DOTALL)
_AGES = ("Age", "Last Seen", "First Seen", "Duration")
_AGE = re.compile(r"(?<=[ \t(])(?:\d+[smhd]){1,2}(?=\s|$|\))")
_COLUMNS = re.compile(r"(?<=\S)(?: {2,}|\t)\s*")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_FOLDER = re.compile(r"/\S*/(LIVE|MERGED)-\d+")
_VERSION = re.compile(
    r'(?<=resourceVersion: ")\d+(?=")|(?<="resourceVersion": ")\d+(?=")|(?<=Resource Version:  )\d+$'
)
_LOG = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ \S+\]")
_PIECE = re.compile(r"((?:\\.|[^.\[\]])+)|\[(\d+|\*)\]")
_ABSENT = object()


def answer_lines(answer: Answer, view: str, names: Names) -> list[str]:
    """Return the lines of a response."""
    lines = [f"warning: {names.hide(_warning(one))}" for one in answer.warnings]
    if after := answer.headers.get("retry-after"):
        lines.append(f"retry-after: {after}")
    asked = view.split()
    if asked == ["code"]:
        return [str(answer.code), *lines]
    if asked == ["body"]:
        return [str(answer.code), *lines, *names.hide(_text(answer)).splitlines()]
    media = answer.media_type
    if media != "application/json":
        lines.append(f"content-type: {media}")
    for one in asked:
        if one.startswith("header:"):
            lines.append(f"{one[7:]}: {names.hide(answer.headers.get(one[7:].lower(), 'absent'))}")
    parts = [one for one in asked if not one.startswith("header:")]
    if not answer.body:
        return [str(answer.code), *lines]
    value = _decoded(answer)
    if value is _ABSENT:
        return [str(answer.code), *lines, *names.hide(_text(answer)).splitlines()]
    if _is_failure(value):
        return [f"{answer.code} {_word(value, answer.code)}", *lines, *_failure(value, names)]
    if asked and not parts:
        return [str(answer.code), *lines]
    return [str(answer.code), *lines, *_value(value, parts, names)]


def _text(answer: Answer) -> str:
    return answer.body.decode(errors="backslashreplace")


def event(line: Any, view: str, names: Names) -> list[str]:
    """Return the lines of one event of a watch."""
    kind, obj = line.get("type"), line.get("object", {})
    if kind == "ERROR":
        return [f"ERROR {_word(obj, 0)}", *_failure(obj, names)]
    metadata = obj.get("metadata", {})
    if kind == "BOOKMARK":
        return [f"BOOKMARK {_flow(names.named(_bookmark(obj)))}"]
    head = f"{kind} {obj.get('kind')} {metadata.get('name', '')}".rstrip()
    version = names.version(metadata.get("resourceVersion"))
    if obj.get("kind") == "Table":
        return [f"{kind} Table", *_table(obj, names)]
    parts = view.split()
    if parts == ["*"]:
        return [f"{head} {version}", *_block(names.named(obj))]
    shown = "".join(
        f" {part}={_flow(names.named(_shown(found)))}" for part in parts for found in [_at(obj, part)]
    )
    return [f"{names.hide(head)} {version}{shown}"]


def printed(line: str, names: Names) -> str:
    """Return a line of kubectl's output: without colors, columns separated by one space."""
    line = _LOG.sub("<log>", _COLOUR.sub("", line))
    line = _VERSION.sub(lambda found: names.version(found[0]), _COLUMNS.sub("  ", line))
    line = _FOLDER.sub(r"<\1>", line)
    if line.startswith(("--- <", "+++ <")):
        line = line.split()[0] + " " + line.split()[1]
    return _AGE.sub("<age>", names.hide(line)).rstrip()


def field(answer: Answer, path: str) -> str:
    """Return a part of a response as text, to be remembered."""
    if path.startswith("header:"):
        return answer.headers.get(path[7:].lower(), "")
    found = _at(answer.json, path)
    if found is _ABSENT:
        raise LookupError(f"no {path} in {answer.text[:300]}")
    return found if isinstance(found, str) else json.dumps(found)


def _bookmark(obj: Any) -> Any:
    """Return a bookmark with its version as yes or no: the version depends on other writes."""
    metadata = dict(obj.get("metadata", {}))
    metadata["resourceVersion"] = "<now>" if str(metadata.get("resourceVersion", "")).isdigit() else "absent"
    return {**obj, "metadata": metadata}


def _decoded(answer: Answer) -> Any:
    if answer.media_type.startswith("application/yaml"):
        return yaml.safe_load(answer.text)
    try:
        return answer.json
    except ValueError:
        return _ABSENT


def _is_failure(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == "Status" and value.get("status") == "Failure"


def _word(status: Any, code: int) -> str:
    said = status.get("reason", "no reason")
    return said if status.get("code") == code or not code else f"{said} (code {status.get('code')})"


def _failure(status: Any, names: Names) -> Iterator[str]:
    status = _in_order(status)
    yield from names.hide(status.get("message", "no message")).splitlines()
    if odd := {
        key: value
        for key, value in status.items()
        if key not in ("kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code")
    }:
        yield f"also {_flow(odd)}"
    if status.get("metadata") not in ({}, None):
        yield f"metadata {_flow(names.named({key: '<token>' if key == 'continue' else value for key, value in status['metadata'].items()}))}"
    if "metadata" not in status:
        yield "metadata absent"
    details = dict(status["details"]) if "details" in status else None
    if details is None:
        return
    causes = details.pop("causes", [])
    yield f"details {_flow(names.named(details))}"
    told: list[Any] = []
    for cause in causes:
        # A real server validates metadata more than once, and repeats the errors.
        if cause in told:
            continue
        told.append(cause)
        at = f" at {cause['field']}" if "field" in cause else ""
        said = f"{at}: {cause.get('message', '')}".replace("\n", "\\n")
        yield f"cause {cause.get('reason', 'without reason')}{names.hide(said)}"


def _in_order(status: Any) -> Any:
    """Return an error of a custom object with its causes sorted: their order is random on a real server."""
    details = status.get("details") or {}
    causes = details.get("causes") or []
    if len(causes) < 2 or not details.get("group", "").endswith("example.com"):
        return status

    def said(some: list[Any]) -> str:
        return ", ".join(f"{one.get('field')}: {one.get('message')}" for one in some)

    ordered = sorted(causes, key=lambda one: (one.get("field", ""), one.get("message", "")))
    message = status["message"].replace(said(causes), said(ordered))
    return {**status, "message": message, "details": {**details, "causes": ordered}}


def _value(value: Any, parts: list[str], names: Names) -> Iterator[str]:
    if parts == ["*"]:
        yield from _block(names.named(value))
        return
    if parts:
        for part in parts:
            if part == "managed":
                yield from _managed(value, names)
            else:
                yield f"{part}: {_flow(names.named(_shown(_at(value, part), part, names)))}"
        return
    if not isinstance(value, dict):
        yield from _block(names.named(value))
    elif value.get("kind") == "Table":
        yield from _table(value, names)
    elif isinstance(value.get("items"), list):
        yield from _listing(value, names)
    else:
        yield from _block(names.named(_unstamped(value)))


def _unstamped(obj: Any) -> Any:
    if not isinstance(obj.get("metadata"), dict):
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _STAMPED}
    return {**obj, "metadata": metadata}


def _listing(value: Any, names: Names) -> Iterator[str]:
    metadata = dict(value.get("metadata", {}))
    # The version of a list depends on other writes.
    if str(metadata.get("resourceVersion", "")).isdigit():
        metadata["resourceVersion"] = "<now>"
    if metadata.get("continue"):
        metadata["continue"] = "<token>"
    yield f"{value.get('kind')} {value.get('apiVersion')} {_flow(metadata)}"
    for one in value["items"]:
        kind = f" ({one['kind']} {one.get('apiVersion')})" if "kind" in one else ""
        yield f"- {names.hide(one['metadata']['name'])}{kind}"


def _table(value: Any, names: Names) -> Iterator[str]:
    columns = value.get("columnDefinitions")
    if columns is None:
        yield "columns null"
    else:
        shown = (
            f"{one['name']}:{one['type']}{':' + one['format'] if one.get('format') else ''}"
            f"{'' if one.get('priority') == 0 else ':wide'}"
            for one in columns
        )
        yield f"columns {', '.join(shown)}"
    metadata = {key: value for key, value in value.get("metadata", {}).items() if key != "resourceVersion"}
    if metadata.get("continue"):
        metadata["continue"] = "<token>"
    if metadata:
        yield f"metadata {_flow(metadata)}"
    aged = {index for index, one in enumerate(columns or ()) if one["name"] in _AGES}
    for row in value.get("rows") or ():
        cells = ["<age>" if index in aged and cell else cell for index, cell in enumerate(row["cells"])]
        if columns is None and cells and re.fullmatch(r"\d+s", str(cells[-1])):
            # Later events have no column definitions; an age is the last column.
            cells[-1] = "<age>"
        obj = row.get("object")
        about = "no object" if obj is None else f"{obj.get('kind')} {obj.get('apiVersion')}"
        yield f"- {_flow(names.named(cells))} of {about}"
    odd = {
        key: one
        for key, one in value.items()
        if key not in ("kind", "apiVersion", "metadata", "columnDefinitions", "rows")
    }
    if odd or value.get("apiVersion") != "meta.k8s.io/v1":
        yield f"also {_flow(odd)} {value.get('apiVersion')}"


def _managed(value: Any, names: Names) -> Iterator[str]:
    entries = value.get("metadata", {}).get("managedFields", [])
    if not entries:
        yield "managed by none"
    # A server sorts entries of one type by time, and whether two writes are in the same second is random.
    for one in sorted(entries, key=lambda entry: (entry["operation"], entry.get("manager", ""))):
        below = f" {one['subresource']}" if "subresource" in one else ""
        time = "" if "time" in one else " without time"
        fields = _fields(one.get("fieldsV1", {}))
        yield names.hide(
            f"{one.get('manager', '')!r} {one['operation']} {one.get('apiVersion')}{below}{time}: {fields}"
        )


def _fields(fields: Any) -> str:
    return " ".join(f"{key}{{{_fields(below)}}}" if below else key for key, below in sorted(fields.items()))


def _shown(found: Any, part: str = "", names: Names | None = None) -> Any:
    if found is _ABSENT:
        return "absent"
    if names is not None and part.endswith("resourceVersion"):
        return names.version(found)
    return found


def _at(value: Any, path: str) -> Any:
    pieces = [(name.replace("\\.", "."), index) for name, index in _PIECE.findall(path)]
    return _dig(value, pieces)


def _dig(value: Any, pieces: list[tuple[str, str]]) -> Any:
    for position, (name, index) in enumerate(pieces):
        if index == "*":
            if not isinstance(value, list):
                return _ABSENT
            found = [_dig(one, pieces[position + 1 :]) for one in value]
            return ["absent" if one is _ABSENT else one for one in found]
        if index:
            if not isinstance(value, list) or int(index) >= len(value):
                return _ABSENT
            value = value[int(index)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return _ABSENT
    return value


def _warning(header: str) -> str:
    found = _WARNING.match(header)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else f"in another form: {header}"


def _block(value: Any) -> list[str]:
    dumped = yaml.safe_dump(value, default_flow_style=None, sort_keys=True, width=108, allow_unicode=True)
    return [line for line in dumped.splitlines() if line != "..."]


def _flow(value: Any) -> str:
    dumped = yaml.safe_dump(value, default_flow_style=True, sort_keys=True, width=100_000, allow_unicode=True)
    dumped = dumped.removesuffix("\n...\n").strip()
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if "\n" in dumped else dumped
