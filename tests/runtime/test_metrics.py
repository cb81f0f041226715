"""Metrics and the endpoint that serves them."""

from collections.abc import Mapping

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.client.transport.base import Query, Response
from lamina.client.write_guard import WriteGuard
from lamina.core.model.plan import Counter, Create, Delete, Emit, Gauge, Replace
from lamina.core.model.queries import Call, CallOrigin
from lamina.errors import SettingsError, Unauthorized, Unreachable
from lamina.objects.types import Ref
from lamina.runtime.metrics.healthz import NotReady, address, listening
from lamina.runtime.metrics.prometheus import Metrics

PARENT = Ref("ex.example.com/v1", "Thing", "default", "a")
CALL = Call(
    url="http://hook/sync",
    body=b"",
    seconds=1.0,
    purpose="sync",
    origin=CallOrigin("metacontroller", "CompositeController", "cc"),
)


def counted(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Return every count by its name and its labels."""
    return {
        (
            sample.name,
            ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def test_a_call_is_counted_under_its_family_with_its_owner() -> None:
    metrics = Metrics()
    metrics.calls.began(CALL)
    whom = "controller_name=cc,controller_type=CompositeController"
    in_flight = ("metacontroller_sync_in_flight_requests", f"{whom},url=http://hook/sync")
    assert counted(metrics)[in_flight] == 1

    metrics.calls.found(CALL, "dns_done", 0.1)
    metrics.calls.ended(CALL, "200", 0.5)

    found = counted(metrics)
    assert found[in_flight] == 0
    total = f"code=200,{whom},method=post,url=http://hook/sync"
    assert found["metacontroller_sync_requests_total", total] == 1
    took = f"{whom},method=post,url=http://hook/sync"
    assert found["metacontroller_sync_request_duration_histogram_seconds_sum", took] == 0.5
    looked_up = f"{whom},event=dns_done,url=http://hook/sync"
    assert found["metacontroller_sync_dns_duration_histogram_seconds_count", looked_up] == 1


def test_a_call_without_an_owner_is_not_counted() -> None:
    metrics = Metrics()
    stranger = Call(url="http://hook", body=b"", seconds=1.0, purpose="sync")

    metrics.calls.began(stranger)
    metrics.calls.ended(stranger, "200", 0.5)

    assert not [name for name, labels in counted(metrics) if name.endswith("_sync_requests_total")]


def test_the_metrics_of_a_hook_are_named_after_the_family_and_the_hook_of_its_first_call() -> None:
    metrics = Metrics()
    origin = CallOrigin("flocks", "Flock", "geese")

    assert not [name for name, _ in counted(metrics) if name.startswith("flocks_")]
    for _ in range(2):
        metrics.calls.began(Call(url="http://hook", body=b"", seconds=1.0, purpose="move", origin=origin))

    in_flight = "flocks_move_in_flight_requests"
    assert [value for (name, _), value in counted(metrics).items() if name == in_flight] == [2]


def test_what_a_controller_does_is_counted_under_its_name() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    meter.begin(depth=lambda: 3, oldest=list, workers=5)
    meter.added()
    meter.taken(0.25)
    meter.worked("error", 0.5)
    meter.worked("success", 0.5)
    meter.retried()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    for action in (
        Create(obj=pod),
        Delete(ref=Ref("v1", "Pod", "", "q"), uid="u"),
        Emit(event={**pod, "kind": "Event", "type": "Warning", "reason": "RolloutAborted"}),
    ):
        meter.wrote(action)

    found = counted(metrics)
    queue = "controller=C,name=C"
    assert found["workqueue_depth", queue] == 3
    assert found["workqueue_adds_total", queue] == 1
    assert found["workqueue_queue_duration_seconds_sum", queue] == 0.25
    assert found["workqueue_retries_total", queue] == 1
    assert found["controller_runtime_reconcile_total", "controller=C,result=error"] == 1
    assert found["controller_runtime_reconcile_errors_total", "controller=C"] == 1
    assert found["controller_runtime_reconcile_time_seconds_count", "controller=C"] == 2
    assert found["lamina_objects_written_total", "controller=C,kind=Pod,operation=created"] == 1
    assert found["lamina_objects_written_total", "controller=C,kind=Pod,operation=deleted"] == 1
    assert found["lamina_events_total", "controller=C,reason=RolloutAborted,type=Warning"] == 1
    assert not [labels for name, labels in found if "kind=Event" in labels]


def test_a_pass_that_is_not_tried_again_and_one_that_a_mistake_ends_are_errors_of_their_own() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    meter.begin(depth=lambda: 0, oldest=list, workers=1)
    names = ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics")

    def errors() -> dict[str, float]:
        found = counted(metrics)
        return {name: found[f"controller_runtime_{name}_total", "controller=C"] for name in names}

    assert errors() == dict.fromkeys(names, 0)
    for result in ("error", "terminal", "panic", "success"):
        meter.worked(result, 0.5)

    assert errors() == {"reconcile_errors": 3, "terminal_reconcile_errors": 1, "reconcile_panics": 1}
    found = counted(metrics)
    results = {
        labels.partition("result=")[2]: count
        for (name, labels), count in found.items()
        if name == "controller_runtime_reconcile_total"
    }
    assert results == {"success": 1, "error": 3, "requeue": 0, "requeue_after": 0}


SERIES: dict[str, dict[str, tuple[str, ...]]] = {
    "controller_runtime": {
        "reconcile_total": ("controller", "result"),
        "reconcile_errors_total": ("controller",),
        "terminal_reconcile_errors_total": ("controller",),
        "reconcile_panics_total": ("controller",),
        "reconcile_time_seconds_bucket": ("controller", "le"),
        "max_concurrent_reconciles": ("controller",),
        "active_workers": ("controller",),
        "webhook_requests_total": ("code", "webhook"),
        "webhook_latency_seconds_bucket": ("le", "webhook"),
        "webhook_requests_in_flight": ("webhook",),
        "webhook_panics_total": (),
    },
    "workqueue": {
        "depth": ("controller", "name"),
        "adds_total": ("controller", "name"),
        "queue_duration_seconds_bucket": ("controller", "le", "name"),
        "work_duration_seconds_bucket": ("controller", "le", "name"),
        "unfinished_work_seconds": ("controller", "name"),
        "longest_running_processor_seconds": ("controller", "name"),
        "retries_total": ("controller", "name"),
    },
    "rest_client": {
        "requests_total": ("code", "host", "method"),
        "request_retries_total": ("code", "host", "verb"),
        "request_duration_seconds_bucket": ("host", "le", "verb"),
        "request_size_bytes_bucket": ("host", "le", "verb"),
        "response_size_bytes_bucket": ("host", "le", "verb"),
        "rate_limiter_duration_seconds_bucket": ("host", "le", "verb"),
    },
    "leader_election": {"master_status": ("name",)},
}


async def test_dashboards_made_for_controller_runtime_find_every_series_with_its_labels() -> None:
    """Whatever has a meaning here has the name it has there; reconciliations have no timeout of their own."""
    metrics = Metrics(host="server")
    meter = metrics.of("C")
    meter.begin(depth=lambda: 0, oldest=list, workers=1)
    metrics.leads("lamina", lambda: True)
    metrics.reviews.began("/check")
    metrics.reviews.ended("/check", 200, 0.1)
    metrics.traffic.waited("GET", 0.1)
    metrics.traffic.retried("GET", 429)
    answer = await metrics.traffic.metered(Answering(200, {})).request("GET", "/api", headers={})
    await answer.read()

    found = {
        (sample.name, tuple(sorted(sample.labels)))
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }

    wanted = {
        (f"{prefix}_{name}", labels) for prefix, series in SERIES.items() for name, labels in series.items()
    }
    assert wanted - found == set()


def test_questions_about_writes_are_counted_by_the_path_they_are_asked_at() -> None:
    metrics = Metrics()
    metrics.reviews.began("/maps")
    assert counted(metrics)["controller_runtime_webhook_requests_in_flight", "webhook=/maps"] == 1

    metrics.reviews.ended("/maps", 400, 0.25)
    metrics.reviews.broke()

    found = counted(metrics)
    assert found["controller_runtime_webhook_requests_in_flight", "webhook=/maps"] == 0
    assert found["controller_runtime_webhook_requests_total", "code=400,webhook=/maps"] == 1
    assert found["controller_runtime_webhook_latency_seconds_sum", "webhook=/maps"] == 0.25
    assert found["controller_runtime_webhook_panics_total", ""] == 1


def test_how_far_rollouts_are_is_the_sum_over_all_owners_and_goes_with_them() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    meter.begin(depth=lambda: 0, oldest=list, workers=1)
    other = PARENT._replace(name="b")
    meter.progress(PARENT, {"Pending": 3, "Healthy": 1})
    meter.progress(other, {"Pending": 1})
    meter.progress(PARENT, {"Pending": 1, "Healthy": 3})

    found = counted(metrics)
    assert found["lamina_rollout_targets", "controller=C,state=Pending"] == 2
    assert found["lamina_rollout_targets", "controller=C,state=Healthy"] == 3
    meter.progress(PARENT, {})
    assert counted(metrics)["lamina_rollout_targets", "controller=C,state=Healthy"] == 0
    meter.end()
    assert not [labels for name, labels in counted(metrics) if name == "lamina_rollout_targets"]


def test_progress_has_a_label_for_its_owner_and_is_removed_with_it() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    meter.begin(depth=lambda: 0, oldest=list, workers=1)
    meter.progress(PARENT, {"Pending": 3, "Healthy": 1})
    meter.progress(PARENT, {"Healthy": 4})

    def owners() -> dict[str, float]:
        found = counted(metrics).items()
        return {labels: value for (name, labels), value in found if name == "lamina_owner_targets"}

    whose = f"controller=C,name={PARENT.name},namespace={PARENT.namespace},state"
    assert owners() == {f"{whose}=Pending": 0, f"{whose}=Healthy": 4}
    meter.progress(PARENT, {})
    assert owners() == {}

    meter.progress(PARENT, {"Healthy": 4})
    meter.end()
    assert owners() == {}


def test_a_value_of_an_owner_is_a_metric_of_its_own_until_its_plans_lack_it_or_it_is_gone() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    meter.begin(depth=lambda: 0, oldest=list, workers=1)

    def gauge(value: float) -> Gauge:
        return Gauge(name="thing_created", help="When.", labels=(("name", "a"),), value=value)

    def values() -> list[float]:
        return [value for (name, _), value in counted(metrics).items() if name == "thing_created"]

    meter.gauges(PARENT, (gauge(1.0),))
    meter.gauges(PARENT, (gauge(2.0),))
    assert values() == [2.0]
    meter.gauges(PARENT, ())
    assert values() == []
    meter.gauges(PARENT, (gauge(3.0),))
    meter.end()
    assert values() == []


def test_an_action_adds_to_counters_of_its_own() -> None:
    metrics = Metrics()
    meter = metrics.of("C")
    by_result = Counter(name="thing_total", help="Things.", labels=(("result", "good"),))
    plain = Counter(name="other_total", help="Others.")
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    meter.wrote(Create(obj=obj, counters=(by_result, plain)))
    meter.wrote(Replace(obj=obj, counters=(by_result,)))
    meter.wrote(Create(obj=obj))

    found = counted(metrics)
    assert found["thing_total", "result=good"] == 2 and found["other_total", ""] == 1


class Answering:
    """A transport with a fixed response."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers

    async def request(
        self, method: str, path: str, *, query: Query = (), headers: Mapping[str, str], body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:  # fmt: skip
        if not self.status:
            raise Unreachable("no answer")
        if self.status == 401:
            raise Unauthorized("Unauthorized")
        return self  # type: ignore[return-value]  # of an answer only the head is looked at

    async def read(self) -> bytes:
        return b"12345"

    async def close(self) -> None: ...


async def test_requests_are_counted_by_method_and_answer_and_so_is_the_time_we_are_asked_to_wait() -> None:
    metrics = Metrics(host="server:6443")
    for status, headers in ((200, {}), (429, {"retry-after": "7"}), (0, {}), (401, {})):
        transport = metrics.traffic.metered(Answering(status, headers))
        if status not in (0, 401):
            answer = await transport.request("GET", "/api", headers={}, body=b"123")
            assert await answer.read() == b"12345"
        else:
            with pytest.raises(Unauthorized if status else Unreachable):
                await transport.request("GET", "/api", headers={})

    found = counted(metrics)
    for code in ("200", "429", "401", "<error>"):
        assert found["rest_client_requests_total", f"code={code},host=server:6443,method=GET"] == 1
    assert found["lamina_api_throttled_seconds_total", ""] == 7
    assert found["rest_client_request_size_bytes_sum", "host=server:6443,verb=GET"] == 6
    assert found["rest_client_response_size_bytes_sum", "host=server:6443,verb=GET"] == 10


async def test_a_watch_is_handed_on_as_it_is() -> None:
    """The size of a watch is unknown, and some transports hand on its events without a read."""
    metrics, watch = Metrics(), Answering(200, {})

    answer = await metrics.traffic.metered(watch).request("GET", "/api", headers={}, streams=True)

    assert id(answer) == id(watch)


async def test_pages_are_served_where_it_is_said_and_one_that_cannot_answer_yet_says_so() -> None:
    ready: list[bytes] = []
    pages = (
        "127.0.0.1:0",
        {"/readyz": lambda: ready[0] if ready else NotReady("no cache"), "/healthz": lambda: b"ok"},
    )
    async with (
        listening(pages, ("0", {"/metrics": lambda: b"no"})) as (where,),
        aiohttp.ClientSession() as http,
    ):

        async def get(path: str) -> tuple[int, str]:
            async with http.get(f"http://{where}{path}") as answer:
                return answer.status, await answer.text()

        assert await get("/healthz") == (200, "ok")
        assert await get("/readyz") == (503, "no cache\n")
        ready.append(b"ok")
        assert await get("/readyz") == (200, "ok")
        assert (await get("/metrics"))[0] == 404


async def test_an_address_that_is_taken_is_said() -> None:
    async with listening(("127.0.0.1:0", {})) as (where,):
        with pytest.raises(SettingsError, match="cannot listen on"):
            async with listening((where, {})):
                pass


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("0", None),
        ("", None),
        (":9999", ("", 9999)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port_or_none(text: str, where: tuple[str, int] | None) -> None:
    assert address(text) == where


@pytest.mark.parametrize("text", ["9999", "host", "host:http", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected an address"):
        address(text)


def test_the_leader_gauge_is_computed_at_each_scrape() -> None:
    metrics, held = Metrics(), [False]
    metrics.leads("lamina", lambda: held[0])
    assert b'leader_election_master_status{name="lamina"} 0.0' in metrics.text()

    held[0] = True
    assert b'leader_election_master_status{name="lamina"} 1.0' in metrics.text()
