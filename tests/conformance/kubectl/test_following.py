"""kubectl in watch mode: it prints a line per change, and ends on request."""

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.bed.kubectl import Kubectl
from tests.conformance.transcript.kinds import GROUP
from tests.conformance.transcript.play import Stage


class Corner:
    """A namespace that is written to without kubectl."""

    def __init__(self, stage: Stage) -> None:
        assert stage.kubectl is not None
        self._wire = stage.wire
        self.namespace = f"t-{uuid4().hex[:10]}"
        self.kubectl: Kubectl = stage.kubectl.within(self.namespace)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    @property
    def secrets(self) -> str:
        """The path of its Secrets."""
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    @property
    def widgets(self) -> str:
        """The path of its Widgets."""
        return f"/apis/{GROUP}/v1/namespaces/{self.namespace}/widgets"

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """Send a request that succeeds and return its answer."""
        payload = None if body is None else json.dumps(body).encode()
        answer = self._wire.call(method, path, {"Content-Type": content}, payload)
        assert answer.code in (200, 201), answer.text
        return answer.json

    def widget(self, name: str, **spec: Any) -> None:
        """Create a Widget."""
        kind = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
        self.send("POST", self.widgets, {**kind, "metadata": {"name": name}, "spec": spec})

    def change(self, path: str, patch: Any) -> None:
        """Merge a patch."""
        self.send("PATCH", path, patch, "application/merge-patch+json")


@pytest.fixture
def corner(stage: Stage) -> Corner:
    """A namespace of the test's own."""
    return Corner(stage)


@contextmanager
def lines_of(kubectl: Kubectl, *arguments: str) -> Iterator[Iterator[list[str]]]:
    """The lines that a running kubectl prints, split into words."""
    with subprocess.Popen(kubectl.line(*arguments), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield (line.split() for line in running.stdout)
        finally:
            running.terminate()


def test_get_watch_prints_each_change(corner: Corner) -> None:
    corner.widget("a", size=1)

    with lines_of(corner.kubectl, "get", "wd", "--watch", "--output-watch-events") as lines:
        seen = [next(lines)[:3], next(lines)[:3]]
        corner.change(f"{corner.widgets}/a", {"spec": {"size": 2}})
        seen.append(next(lines)[:3])
        corner.widget("b", size=3)
        seen.append(next(lines)[:3])
        corner.send("DELETE", f"{corner.widgets}/a")
        seen.append(next(lines)[:3])

    assert seen == [
        ["EVENT", "NAME", "SIZE"],
        ["ADDED", "a", "1"],
        ["MODIFIED", "a", "2"],
        ["ADDED", "b", "3"],
        ["DELETED", "a", "2"],
    ]


def test_get_watch_only_tells_what_comes_after(corner: Corner) -> None:
    corner.send("POST", corner.secrets, {"metadata": {"name": "before"}})

    with lines_of(corner.kubectl, "get", "secret", "--watch", "-o", "name") as lines:
        assert next(lines) == ["secret/before"]
        corner.send("POST", corner.secrets, {"metadata": {"name": "after"}})
        assert next(lines) == ["secret/after"]


def test_wait_sees_a_condition_come_true(corner: Corner) -> None:
    corner.widget("a", size=1)

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(corner.kubectl, "wait", "--for=condition=Ready", "wd/a", "--timeout=120s")
        conditions = [{"type": "Ready", "status": "True"}]
        corner.change(f"{corner.widgets}/a/status", {"status": {"conditions": conditions}})

        assert waiting.result() == f"widget.{GROUP}/a condition met\n"


def test_wait_sees_an_object_come_and_go(corner: Corner) -> None:
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(corner.kubectl, "wait", "--for=create", "wd/a", "--timeout=120s")
        corner.widget("a", size=1)
        assert coming.result() == f"widget.{GROUP}/a condition met\n"

        going = thread.submit(corner.kubectl, "wait", "--for=delete", "wd/a", "--timeout=120s")
        corner.send("DELETE", f"{corner.widgets}/a")
        assert going.result() in (f"widget.{GROUP}/a condition met\n", "")


def test_delete_waits_for_a_finalizer(corner: Corner) -> None:
    corner.send("POST", corner.secrets, {"metadata": {"name": "held", "finalizers": ["example.com/x"]}})

    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(corner.kubectl, "delete", "secret", "held", "--timeout=120s")
        corner.change(f"{corner.secrets}/held", {"metadata": {"finalizers": None}})

        assert "deleted" in ending.result() or not ending.exception()


def test_events_are_followed(corner: Corner) -> None:
    about = {"apiVersion": "v1", "kind": "Secret", "namespace": corner.namespace, "name": "s"}
    event = {"involvedObject": about, "type": "Normal", "lastTimestamp": "2001-01-01T00:00:00Z"}
    path = f"/api/v1/namespaces/{corner.namespace}/events"
    corner.send("POST", path, {**event, "metadata": {"name": "one"}, "reason": "One", "message": "first"})

    with lines_of(corner.kubectl, "events", "--watch", "--no-headers") as lines:
        assert next(lines)[2:] == ["One", "Secret/s", "first"]
        corner.send(
            "POST", path, {**event, "metadata": {"name": "two"}, "reason": "Two", "message": "second"}
        )
        assert next(lines)[2:] == ["Two", "Secret/s", "second"]


def test_both_sides_say_their_version(corner: Corner) -> None:
    told = json.loads(corner.kubectl("version", "-o", "json"))

    assert (told["serverVersion"]["major"], told["serverVersion"]["minor"]) == ("1", "35")
    assert told["serverVersion"]["gitVersion"].startswith("v1.35.")
    assert "apps/v1\n" in corner.kubectl("api-versions")
