"""No cluster keeps all hands."""

from lamina.runtime.cluster.per_cluster_limit import PerClusterLimit
from tests.runtime.cluster import at


def test_a_key_whose_cluster_has_used_up_its_share_waits_and_others_do_not() -> None:
    shares = PerClusterLimit(2)
    a, b, c = (at(name)._replace(cluster="east") for name in "abc")

    assert shares.acquire(a) and shares.acquire(b)
    assert not shares.acquire(c)
    assert shares.acquire(at("x")) and shares.acquire(at("x")._replace(cluster="west"))

    assert shares.release(at("x")) is None
    assert shares.release(a) == c
    assert shares.acquire(c)
    assert shares.release(b) is None


def test_keys_that_wait_come_in_the_order_they_came_each_once() -> None:
    shares = PerClusterLimit(1)
    busy, *waiting = (at(name)._replace(cluster="east") for name in "abcd")
    assert shares.acquire(busy)
    for ref in (*waiting, waiting[0]):
        assert not shares.acquire(ref)

    came = []
    ref = busy
    while (following := shares.release(ref)) is not None:
        came.append(following)
        assert shares.acquire(following)
        ref = following

    assert came == waiting
