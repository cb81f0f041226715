"""The table of what clusters cost."""

from bench.clusters import Row, table


def test_a_row_above_its_aim_says_so() -> None:
    lines = table(
        [Row("memory", 600.0, "MiB", 500.0), Row("a fixture", 12.34, "ms", 20.0), Row("each", 1.5, "MiB")]
    ).splitlines()

    assert [line.split() for line in lines] == [
        ["memory", "600.0", "MiB", "at", "most", "500", "MiB", "short"],
        ["a", "fixture", "12.3", "ms", "at", "most", "20", "ms"],
        ["each", "1.5", "MiB"],
    ]
