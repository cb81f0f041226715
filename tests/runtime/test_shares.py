"""No cluster keeps all hands."""

from lamina.runtime.shares import Shares
from tests.runtime.cluster import at


def test_a_key_whose_cluster_has_used_up_its_share_waits_and_others_do_not() -> None:
    shares = Shares(2)
    a, b, c = (at(name)._replace(cluster="east") for name in "abc")

    assert shares.take(a) and shares.take(b)
    assert not shares.take(c)
    assert shares.take(at("x")) and shares.take(at("x")._replace(cluster="west"))

    assert shares.give_back(at("x")) is None
    assert shares.give_back(a) == c
    assert shares.take(c)
    assert shares.give_back(b) is None


def test_keys_that_wait_come_in_the_order_they_came_each_once() -> None:
    shares = Shares(1)
    busy, *waiting = (at(name)._replace(cluster="east") for name in "abcd")
    assert shares.take(busy)
    for ref in (*waiting, waiting[0]):
        assert not shares.take(ref)

    came = []
    ref = busy
    while (following := shares.give_back(ref)) is not None:
        came.append(following)
        assert shares.take(following)
        ref = following

    assert came == waiting
