"""Faults in words, as `lamina chaos` prints them."""

import pytest

from lamina.cli.faults_client import describe
from lamina.faults import Cut, Expire, Fault, Refuse, Silence, Slow, Stale


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Silence(), "requests get no response"),
        (Silence(after=True, verbs=("create",)), "create requests get no response, but are executed"),
        (Slow(seconds=2, verbs=("list", "watch")), "list and watch requests are answered 2s late"),
        (Refuse(code=429, rate=0.2), "20% of requests are answered 429"),
        (Refuse(code=500, after=True, times=3), "requests are answered 500, but are executed, 3 times"),
        (Refuse(resources=("pods", "pods/status"), times=1), "requests for pods, pods/status are answered 503, once"),
        (Refuse(path="/apis/*", users=("jane",)), "requests at /apis/* by jane are answered 503"),
        (Cut(), "watches that are open end"),
        (Cut(events=1), "watches end after 1 event"),
        (Cut(events=5, rate=0.5), "50% of watches end after 5 events"),
        (Expire(), "watch and list requests that resume are answered 410"),
        (Stale(), "get and list and watch requests return stale objects"),
        (Stale(seconds=30, verbs=("list",)), "list requests return objects that are 30s stale"),
        (Stale(versions=3, verbs=("get",)), "get requests return objects that are 3 versions stale"),
    ],
)  # fmt: skip
def test_a_fault_is_described_in_words(fault: Fault, said: str) -> None:
    assert describe(fault) == said
