"""
Carries out a program on one server and records the responses.

Values that differ between runs are replaced by names, so that the records of two servers
can be compared line by line.
"""

import json
import re
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tests.bed.wire import Answer
from tests.conformance.model.contents import KINDS, OWN, name_of
from tests.conformance.model.programs import BEGAN, LAST, UID, VERSION, Saying
from tests.conformance.transcript import telling
from tests.conformance.transcript.naming import Names
from tests.conformance.transcript.reach import Wire

_MADE = re.compile(r"\bmade-[a-z0-9]{5}\b")


class Listener:
    """One namespace on one server, and the responses about one kind in it."""

    def __init__(self, wire: Wire, kind: str) -> None:
        self._wire = wire
        self._namespace = f"p-{uuid4().hex[:10]}"
        self._names = Names({"ns": self._namespace, "own": ""})
        self._known: dict[str, tuple[str, str]] = {}
        """The newest version and uid of every object."""
        made = {"metadata": {"name": self._namespace}}
        self._call("POST", "/api/v1/namespaces", made, "application/json")
        seen = self._call("GET", self._path(Saying(method="GET", kind=kind, query={"limit": "1"})), None, "")
        self._began = str(seen.json["metadata"]["resourceVersion"])

    def send(self, saying: Saying) -> list[str]:
        """Send one request and return its response as lines; a list is read to its last page."""
        if saying.method == "WATCH":
            return self._watched(saying)
        path = self._path(saying)
        body = self._filled(saying.body, saying) if saying.body is not None else None
        answer = self._call(saying.method, path, body, saying.content, saying.accept)
        lines = self._lines(answer)
        while saying.method == "GET" and (token := _token(answer)):
            following = "&".join(part for part in path.split("&") if not part.startswith("resourceVersion"))
            answer = self._call("GET", f"{following}&continue={token}", None, "", saying.accept)
            lines += self._lines(answer)
        return lines

    def _lines(self, answer: Answer) -> list[str]:
        self._note(answer)
        steady = replace(answer, body=json.dumps(_steady(answer.json)).encode())
        return [_MADE.sub("made-<random>", line) for line in telling.answer_lines(steady, "*", self._names)]

    def _watched(self, saying: Saying) -> list[str]:
        """Return every event up to the creation of the last object."""
        opened = self._wire.open(f"{self._path(saying)}&watch=true", {})
        if isinstance(opened, Answer):
            return self._lines(opened)
        lines: list[str] = []
        try:
            for event in iter(opened.line, None):
                event["object"] = _steady(event["object"])
                lines += telling.event(event, "*", self._names)
                if event["object"]["metadata"].get("name") == LAST:
                    return lines
            return [*lines, "end"]
        except TimeoutError:
            return [*lines, "silence"]
        finally:
            opened.close()

    def _path(self, saying: Saying) -> str:
        kind = KINDS[saying.kind]
        scope = ("namespaces", self._namespace) if kind.namespaced else ()
        name = name_of(saying.kind, saying.name) if saying.name else ""
        parts = (kind.path, *scope, saying.kind, name, saying.below)
        path = "/".join(part for part in parts if part)
        if saying.query:
            path += "?" + "&".join(f"{key}={value}" for key, value in saying.query.items())
        return str(self._filled(path, saying))

    def _filled(self, value: Any, saying: Saying) -> Any:
        """Return a request with the placeholders replaced by this server's values."""
        name = name_of(saying.kind, saying.name or "a").replace(OWN, self._namespace)
        version, uid = self._known.get(name, ("1", "none"))
        text = json.dumps(value)
        for word, known in ((VERSION, version), (UID, uid), (OWN, self._namespace)):
            text = text.replace(word, known)
        if BEGAN in text:
            text = text.replace(BEGAN, self._began)
        return json.loads(text)

    def _note(self, answer: Answer) -> None:
        said = answer.json
        for one in said.get("items") or [said]:
            metadata = one.get("metadata") or {}
            if metadata.get("name") and metadata.get("resourceVersion") and metadata.get("uid"):
                self._known[metadata["name"]] = metadata["resourceVersion"], metadata["uid"]

    def _call(
        self, method: str, path: str, body: Any, content: str, accept: str = "application/json"
    ) -> Answer:
        headers = {"Accept": accept} | ({"Content-Type": content} if body is not None else {})
        payload = json.dumps(body).encode() if body is not None else None
        return self._wire.call(method, path, headers, payload)


def _token(answer: Answer) -> str:
    return str((answer.json.get("metadata") or {}).get("continue") or "")


def _steady(said: Any) -> Any:
    """Return a response without values that vary: the order of owners, ages, the global version."""
    rows = said.get("rows") or []
    for one in [said, *(said.get("items") or []), *(row.get("object") or {} for row in rows)]:
        managed = (one.get("metadata") or {}).get("managedFields")
        if managed:
            managed.sort(key=_by_owner)
    if said.get("kind") == "Table" or "items" in said:
        said["metadata"].pop("resourceVersion", None)
        if said["metadata"].get("continue"):
            said["metadata"]["continue"] = "<token>"
        for row in rows:
            row["cells"] = row["cells"][:-1]
    return said


def _by_owner(entry: Any) -> tuple[str, str, str, str]:
    fields = json.dumps(entry.get("fieldsV1"), sort_keys=True)
    return entry["manager"], entry["operation"], entry.get("subresource", ""), fields
