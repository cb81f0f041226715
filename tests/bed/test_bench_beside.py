"""Our hub beside the original one."""

from collections import Counter

from bench.beside import lines
from bench.measured_server import Spent


def spent(seconds: float) -> Spent:
    return Spent(
        seconds=seconds,
        requests=Counter(PUT=10),
        events=0,
        processor=0.5,
        resident=64 << 20,
        calls=0,
        served=2.0,
    )


def test_ours_is_as_many_times_better_as_the_middle_of_the_rounds_says() -> None:
    names = ("10 clusters, from nothing", "an edit of all 10", "an edit of 10, a tenth at a time")
    theirs = [dict.fromkeys(names, spent(seconds)) for seconds in (9.0, 100.0, 8.0)]
    our = [dict.fromkeys(names, spent(seconds)) for seconds in (4.5, 1.0, 50.0)]

    first, second, better = list(lines({"original": theirs, "ours": our}, 10))[:3]

    assert first == ("10 clusters, from nothing, original", "9.0", "10.0", "0.5", "64.0", "2.0")
    assert second[1] == "4.5"
    assert better == ("    better by", "2.00x", "1.00x", "1.00x", "1.00x", "1.00x")
