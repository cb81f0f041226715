"""How often something may happen."""

from lamina.ratelimit import TokenBucket, TokenBuckets


class Hand:
    """A clock wound by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_so_many_go_at_once_and_the_others_wait_their_turn() -> None:
    bucket = TokenBucket(10, 2, now=Hand())

    assert [bucket.reserve() for _ in range(5)] == [0, 0, 0.1, 0.2, 0.3]


def test_permits_come_back_and_never_more_than_fit() -> None:
    hand = Hand()
    bucket = TokenBucket(1, 2, now=hand)
    assert [bucket.take() for _ in range(3)] == [True, True, False]

    hand.at = 1
    assert [bucket.take() for _ in range(2)] == [True, False]

    hand.at = 100
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_each_has_permits_of_its_own_and_only_so_many_are_remembered() -> None:
    buckets = TokenBuckets(1, 1, remembered=2, now=Hand())
    assert [buckets.take(one) for one in "aabb"] == [True, False, True, False]

    assert buckets.take("c")
    assert buckets.take("a"), "its bucket is forgotten"
