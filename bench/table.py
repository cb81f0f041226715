"""The results of two servers as one table, with ratios and aims."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.measure import Result, Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    One row: a figure of a measurement, and its aim.

    `more_is_better` gives the direction of the comparison: a ratio above one always
    means that the embedded server is better.
    """

    label: str
    measurement: str
    figure: str
    unit: str
    more_is_better: bool = False
    aim: float | None = None

    @property
    def shown_aim(self) -> str:
        """Return the aim as text."""
        return f"{self.aim:g}x" if self.aim else ""


def _rates(operation: str, clients: int, aim: float | None) -> tuple[Row, ...]:
    name = f"{operation}, {clients}"
    who = "client" if clients == 1 else "clients"
    return (
        Row(
            label=f"{operation}, {clients} {who}",
            measurement=name,
            figure="rate",
            unit="/s",
            more_is_better=True,
            aim=aim,
        ),
        Row(label="    p50", measurement=name, figure="p50_ms", unit="ms"),
        Row(label="    p99", measurement=name, figure="p99_ms", unit="ms"),
        Row(label="    server CPU a request", measurement=name, figure="server_cpu_us", unit="us"),
    )


def _events(writers: int, aim: float | None) -> tuple[Row, ...]:
    name = f"watch, {writers}"
    who = "writer" if writers == 1 else "writers"
    return (
        Row(
            label=f"100 watchers, {writers} {who}: events",
            measurement=name,
            figure="rate",
            unit="/s",
            more_is_better=True,
            aim=aim,
        ),
        Row(label="    delivery p50", measurement=name, figure="p50_ms", unit="ms"),
        Row(label="    delivery p99", measurement=name, figure="p99_ms", unit="ms"),
        Row(label="    server CPU an event", measurement=name, figure="server_cpu_us", unit="us"),
        Row(label="    watchers cut off", measurement=name, figure="closed", unit=""),
    )


ROWS: tuple[Row, ...] = (
    Row(label="start to ready", measurement="start to ready", figure="seconds", unit="s", aim=6),
    Row(label="start to first account", measurement="start to first account", figure="seconds", unit="s"),
    Row(label="memory at rest", measurement="memory at rest", figure="MiB", unit="MiB", aim=4),
    Row(label="memory after load", measurement="memory after load", figure="MiB", unit="MiB", aim=4),
    *_rates("create", 1, 2),
    *_rates("create", 32, 4),
    *_rates("get", 1, 8),
    *_rates("get", 32, 8),
    *_rates("patch", 1, None),
    *_rates("patch", 32, None),
    *_rates("apply", 1, 2),
    *_rates("apply", 32, 2),
    *_events(1, 2),
    *_events(32, 2),
    Row(label="list of 5,000", measurement="list of 5,000", figure="p50_ms", unit="ms"),
    Row(label="namespace deletion", measurement="namespace deletion", figure="seconds", unit="s", aim=20),
    Row(label="1,000 pods available", measurement="1,000 pods", figure="seconds", unit="s"),
    Row(label="    CPU of everything", measurement="1,000 pods", figure="cpu_seconds", unit="s"),
)


def middle(rounds: Sequence[Results]) -> Results:
    """Return the median of each figure over the rounds."""

    def combine(results: Sequence[Result]) -> Result:
        names = {name for result in results for name in result}
        return {name: median(result.get(name, 0.0) for result in results) for name in names}

    return {name: combine([one[name] for one in rounds]) for name in rounds[0]}


def ratio(row: Row, real: Results, ours: Results) -> float | None:
    """Return the factor by which the embedded server is better; None if a figure is zero."""
    theirs, our = _figure(row, real), _figure(row, ours)
    if not theirs or not our:
        return None
    return our / theirs if row.more_is_better else theirs / our


def comparison(real: Results, ours: Results) -> str:
    """Return the table of both servers."""
    lines = [_line("", "real", "embedded", "better by", "aim")]
    for row in ROWS:
        times = ratio(row, real, ours)
        short = "  short" if row.aim and times is not None and times < row.aim else ""
        lines.append(
            _line(
                row.label,
                _shown(row, real),
                _shown(row, ours),
                f"{times:.2f}x" if times is not None else "",
                row.shown_aim + short,
            )
        )
    return "\n".join(lines)


def alone(results: Results, name: str) -> str:
    """Return the table of one server."""
    return "\n".join([_line("", name), *(_line(row.label, _shown(row, results)) for row in ROWS)])


def failures(results: Results, name: str) -> list[str]:
    """Return a sentence for each measurement in which requests failed."""
    failed = {measurement: result.get("errors", 0.0) for measurement, result in results.items()}
    return [f"{name}: {count:.0f} requests failed in {one}" for one, count in failed.items() if count]


def busiest_load(rounds: Sequence[Results]) -> float:
    """Return the largest share of one processor that the load generator used in any measurement."""
    shares = [
        one["client_cpu_us"] * one["rate"] / 1e6
        for results in rounds
        for one in results.values()
        if "rate" in one
    ]
    return max(shares, default=0.0)


def _figure(row: Row, results: Results) -> float:
    return results[row.measurement].get(row.figure, 0.0)


def _shown(row: Row, results: Results) -> str:
    value = _figure(row, results)
    digits = 0 if value >= 100 or row.unit == "" else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {row.unit}".rstrip()


def _line(label: str, *cells: str) -> str:
    wide, narrow = cells[:3], cells[3:]
    return "".join(
        [f"{label:34}", *(f"{cell:>16}" for cell in wide), *(f"  {cell}" for cell in narrow)]
    ).rstrip()
