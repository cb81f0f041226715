"""
Runs a story on a server.

The requests of a step:

    GET PATH, POST PATH, PUT PATH, DELETE PATH, …
    PATCH/merge PATH            also /json, /strategic, /apply
    WATCH 3 PATH                watch until three events have arrived, `end`: until the server ends it
    OPEN NAME PATH              begin to watch
    READ NAME 3                 the next three events of an open watch, or `end`
    kubectl ARGUMENTS           with the body as its standard input, and variables such as EDITOR=x before it
    EVENTUALLY …                repeat until the response is the expected one
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import RemoteDisconnected
from typing import Any
from uuid import uuid4

import yaml

from lamina.testing.waiting import eventually_sync
from tests.bed.kubectl import Kubectl
from tests.bed.wire import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Answer
from tests.conformance.transcript import telling
from tests.conformance.transcript.kinds import GROUP
from tests.conformance.transcript.naming import Names
from tests.conformance.transcript.reach import Stream, Wire
from tests.conformance.transcript.script import Step, Story, blaming_the_sender
from tests.conformance.transcript.trouble import TranscriptError

_PATCHES = {"merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC, "apply": APPLY}
# A real garbage collector discovers new kinds twice a minute, and a busy machine delays everything.
_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where stories run: a server, and kubectl if the stories use it."""

    wire: Wire
    embedded: bool
    kubectl: Kubectl | None = None
    url: str = ""
    recording: bool = False


@dataclass(slots=True)
class Played:
    """The result of one step."""

    step: Step
    answer: list[str]


@dataclass(slots=True)
class _Scene:
    stage: Stage
    names: Names
    namespace: str
    open: dict[str, Stream] = field(default_factory=dict)


def play(story: Story, stage: Stage, words: Mapping[str, str]) -> list[Played]:
    """Run a story and return the response of each step."""
    namespace = f"t-{uuid4().hex[:10]}"
    scene = _Scene(stage, Names({**words, **_paths(namespace)}), namespace)
    if stage.url:
        scene.names.remember("url", stage.url)
    if any("$" in line for step in story.steps for line in [step.said, *step.body]):
        made = stage.wire.call(
            "POST",
            "/api/v1/namespaces",
            {"Content-Type": JSON},
            json.dumps({"metadata": {"name": namespace}}).encode(),
        )
        if made.code != 201:
            raise TranscriptError(f"no namespace for the story: {made.text}")
    try:
        return [_play(step, scene) for step in story.steps]
    finally:
        for stream in scene.open.values():
            stream.close()


def differences(played: list[Played], *, embedded: bool) -> str:
    """Return the differences from the expected responses, readable; empty if there are none."""
    odd = [one for one in played if not one.step.accepts(one.answer, embedded=embedded)]
    return "\n".join(_difference(one, embedded) for one in odd)


def _difference(one: Played, embedded: bool) -> str:
    expected = one.step.own_answer if embedded and one.step.because else one.step.answer
    if embedded:
        expected = blaming_the_sender(expected)
    said = "\n".join(one.step.written)
    wanted = "\n".join(f"- {line}" for line in expected)
    came = "\n".join(f"+ {line}" for line in one.answer)
    return f"line {one.step.line}:\n{said}\n{wanted}\n{came}"


def _paths(namespace: str) -> Mapping[str, str]:
    core = f"/api/v1/namespaces/{namespace}"
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    return {
        "ns": namespace,
        "core": core,
        "cm": f"{core}/configmaps",
        "secrets": f"{core}/secrets",
        "services": f"{core}/services",
        "pods": f"{core}/pods",
        "events": f"{core}/events",
        "apps": apps,
        "deployments": f"{apps}/deployments",
        "leases": f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        "group": GROUP,
        "widgets": f"/apis/{GROUP}/v1/namespaces/{namespace}/widgets",
        "blobs": f"/apis/{GROUP}/v1/namespaces/{namespace}/blobs",
        "crds": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "own": namespace.replace("-", ""),
    }


def _play(step: Step, scene: _Scene) -> Played:
    said = step.said.split(" ", 1)
    if said[0] != "EVENTUALLY":
        return Played(step, list(_act(step, step.said, scene)))
    answer: list[str] = []

    def is_accepted() -> bool:
        nonlocal answer
        answer = [line.rstrip() for line in _act(step, said[1], scene)]
        return step.accepts(answer, embedded=scene.stage.embedded) or _begins(answer, step, scene.stage)

    try:
        eventually_sync(is_accepted, seconds=_TIMEOUT, interval=0.1)
    except AssertionError:
        if scene.stage.recording:
            raise TranscriptError(f"line {step.line}: the expected answer never came, but {answer}") from None
    return Played(step, answer)


def _begins(answer: list[str], step: Step, stage: Stage) -> bool:
    # Before a recording only the first lines of a response are in the file; the rest is recorded.
    return stage.recording and answer[: len(step.answer)] == step.answer


def _act(step: Step, said: str, scene: _Scene) -> Iterator[str]:
    verb, _, rest = said.partition(" ")
    if verb == "WATCH":
        many, _, path = rest.partition(" ")
        opened = scene.stage.wire.open(_watching(scene.names.path(path)), dict(step.headers))
        yield from _events(opened, many, step, scene.names, close=True)
    elif verb == "OPEN":
        name, _, path = rest.partition(" ")
        opened = scene.stage.wire.open(_watching(scene.names.path(path)), dict(step.headers))
        if isinstance(opened, Answer):
            yield from telling.answer_lines(opened, step.view, scene.names)
        else:
            scene.open[name] = opened
            yield "200"
    elif verb == "READ":
        name, _, many = rest.partition(" ")
        yield from _events(scene.open[name], many, step, scene.names, close=False)
    elif verb == "kubectl" or "=" in verb:
        yield from _kubectl(step, said, scene)
    else:
        try:
            answer = _call(step, verb, rest, scene)
        except (RemoteDisconnected, ConnectionResetError, TimeoutError):
            yield "no answer"
            return
        for name, path in step.kept:
            try:
                scene.names.remember(name, telling.field(answer, path))
            except LookupError:
                yield f"nothing at {path}"
        yield from telling.answer_lines(answer, step.view, scene.names)


def _call(step: Step, verb: str, path: str, scene: _Scene) -> Answer:
    method, _, patch = verb.partition("/")
    headers = {name: scene.names.fill(value) for name, value in step.headers}
    body: bytes | None = None
    if step.body:
        text = scene.names.fill("\n".join(step.body))
        body = text.encode() if step.raw else json.dumps(yaml.safe_load(text)).encode()
        headers = {"Content-Type": _PATCHES[patch] if patch else JSON} | headers
    if headers.get("Content-Type") == "none":
        del headers["Content-Type"]
    return scene.stage.wire.call(method, scene.names.path(path), headers, body)


def _watching(path: str) -> str:
    if "watch=" in path or "/watch/" in path:
        return path
    return f"{path}{'&' if '?' in path else '?'}watch=true"


def _events(opened: Answer | Stream, many: str, step: Step, names: Names, *, close: bool) -> Iterator[str]:
    if isinstance(opened, Answer):
        yield from telling.answer_lines(opened, step.view, names)
        return
    try:
        left = -1 if many == "end" else int(many)
        while left:
            try:
                line: Any = opened.line()
            except TimeoutError:
                yield "silence"
                return
            if line is None:
                yield "end"
                return
            yield from telling.event(line, step.view, names)
            left -= 1
    finally:
        if close:
            opened.close()


def _kubectl(step: Step, said: str, scene: _Scene) -> Iterator[str]:
    if scene.stage.kubectl is None:
        raise TranscriptError("kubectl is not on this stage")
    words = shlex.split(scene.names.fill(said))
    variables = {}
    while words[0] != "kubectl":
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    kubectl = scene.stage.kubectl.within(scene.namespace)
    given = scene.names.fill("\n".join(step.body))
    done = kubectl.attempt(*words[1:], given=given, editor=variables.get("EDITOR"))
    for name, pattern in step.kept:
        found = re.search(pattern, done.both)
        if found:
            scene.names.remember(name, found[1])
        else:
            yield f"nothing like {pattern}"
    if done.code:
        yield f"exit {done.code}"
    for mark, text in (("", done.out), ("! ", done.err)):
        for line in text.splitlines():
            # How kubectl ends an aborted watch is a race inside kubectl.
            if "client-go/tools/cache" not in line and "tools/cache/reflector" not in line:
                yield f"{mark}{telling.printed(line, scene.names)}"
