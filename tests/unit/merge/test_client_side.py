"""kubectl's client-side apply removes fields that were applied and no longer are, and no others."""

import json
from typing import Any

import pytest

from lamina.merge.client_side import annotated, client_side
from lamina.merge.last_applied import ANNOTATION
from lamina.merge.schema import Schema
from lamina.objects.types import Made
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.testing.builders import edited

OPEN = Schema()
OPEN.type, OPEN.open = "object", True
WEB = next(
    kind.schema for kind in builtin_kinds() if (kind.api_version, kind.kind) == ("apps/v1", "Deployment")
)


def web(*containers: Made, labels: Made | None = None, **spec: Any) -> Made:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels or {}},
        "spec": {"template": {"spec": {"containers": list(containers)}}, **spec},
    }


MAIN: Made = {"name": "main", "image": "web:1"}


def pod_of(made: Made) -> Any:
    return made["spec"]["template"]["spec"]


def test_a_container_that_is_not_applied_any_more_goes_and_one_of_another_manager_stays() -> None:
    live = annotated(web(MAIN, {"name": "side", "image": "side:1"}))
    pod_of(live)["containers"].append({"name": "injected", "image": "mesh:1"})

    made = client_side(live, web(MAIN), WEB)

    assert [one["name"] for one in pod_of(made)["containers"]] == ["main", "injected"]


def test_a_variable_and_a_label_that_are_not_stated_any_more_go() -> None:
    both: Made = {**MAIN, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    live = annotated(web(both, labels={"team": "a", "tier": "front"}))
    live["metadata"]["labels"]["theirs"] = "x"

    made = client_side(live, web({**MAIN, "env": [{"name": "A", "value": "1"}]}, labels={"team": "a"}), WEB)

    assert pod_of(made)["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert made["metadata"]["labels"] == {"team": "a", "theirs": "x"}


def test_a_finalizer_that_is_not_stated_any_more_goes() -> None:
    def held_by(*finalizers: str) -> Made:
        return {**web(MAIN), "metadata": {"name": "web", "finalizers": list(finalizers)}}

    live = annotated(held_by("a", "b"))
    live["metadata"]["finalizers"] = ["a", "b", "theirs"]

    made = client_side(live, held_by("b"), WEB)

    assert made["metadata"]["finalizers"] == ["b", "theirs"]


def test_another_strategy_takes_what_was_filled_in_for_the_first_with_it() -> None:
    live = annotated(web(MAIN))
    live["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}

    assert client_side(live, web(MAIN, strategy={"type": "Recreate"}), WEB)["spec"]["strategy"] == {
        "type": "Recreate"
    }
    same = client_side(live, web(MAIN, strategy={"type": "RollingUpdate"}), WEB)
    assert same["spec"]["strategy"] == live["spec"]["strategy"]


def test_lists_of_an_unknown_kind_are_replaced() -> None:
    before: Made = {"apiVersion": "example.com/v1", "kind": "Flock", "metadata": {"name": "f"}}
    live = annotated({**before, "spec": {"birds": [{"name": "a"}, {"name": "b"}], "size": 2}})
    live["spec"]["mine"] = True

    made = client_side(live, {**before, "spec": {"birds": [{"name": "c"}]}}, OPEN)

    assert made["spec"] == {"birds": [{"name": "c"}], "mine": True}


def test_what_is_stated_as_it_was_changes_nothing_at_all() -> None:
    live = annotated(web(MAIN))
    pod_of(live)["restartPolicy"] = "Always"

    assert client_side(live, web(MAIN), WEB) == live


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_without_a_record_of_what_was_applied_nothing_goes(text: str) -> None:
    live = web(MAIN, {"name": "side", "image": "side:1"})
    live["metadata"]["annotations"] = {ANNOTATION: text}

    made = client_side(live, web(MAIN), WEB)

    assert [one["name"] for one in pod_of(made)["containers"]] == ["main", "side"]
    assert json.loads(made["metadata"]["annotations"][ANNOTATION]) == edited(
        web(MAIN), metadata={"annotations": {}}
    )


def test_what_is_the_servers_is_not_written_from_a_manifest_that_was_read() -> None:
    live = annotated(web(MAIN))
    live["metadata"] |= {"resourceVersion": "9", "managedFields": [{"manager": "x"}]}
    read = edited(web(MAIN), metadata={"resourceVersion": "7", "managedFields": []})

    assert client_side(live, read, WEB) == live


def of(api_version: str, kind: str) -> Schema:
    return next(one.schema for one in builtin_kinds() if (one.api_version, one.kind) == (api_version, kind))


def test_ports_that_share_a_number_are_not_taken_for_one() -> None:
    ports = [
        {"name": "udp", "port": 53, "protocol": "UDP"},
        {"name": "tcp", "port": 53, "protocol": "TCP"},
    ]
    dns = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns"}, "spec": {"ports": ports}}
    live = annotated(dns)

    assert client_side(live, dns, of("v1", "Service"))["spec"]["ports"] == ports


def test_what_is_replaced_as_a_whole_keeps_nothing_that_is_not_stated() -> None:
    def budget(**labels: str) -> Made:
        spec = {"selector": {"matchLabels": labels}}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "a"},
            "spec": spec,
        }

    made = client_side(annotated(budget(a="1", b="2")), budget(a="1"), of("policy/v1", "PodDisruptionBudget"))

    assert made["spec"]["selector"] == {"matchLabels": {"a": "1"}}
