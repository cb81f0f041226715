"""The options of a process that runs families, by what they are about, and the values they come to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lamina.families.every import Manner
    from lamina.rates import Bucket, Buckets
    from lamina.runtime.leases import Terms

Command = TypeVar("Command", bound=Callable[..., Any])
Flags = dict[str, Any]
_LEVELS = ("debug", "info", "warning", "error")


class Time(click.ParamType[float]):
    """A length of time as `10s` or `1m30s`, in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from lamina.objects.durations import parse_duration

        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(value).total_seconds()
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
        if seconds <= 0:
            self.fail(f'expected a while, got "{value}"', param, ctx)
        return seconds


TIME = Time()
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


class Switches(click.Command):
    """A command whose switches may have a value, as those of programs in Go: `--leader-election=false`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        plain = [one for argument in args for one in self._plain(argument, ctx)]
        return super().parse_args(ctx, plain)

    def _plain(self, argument: str, ctx: click.Context) -> list[str]:
        name, said, value = argument.partition("=")
        switch = next(
            (
                one
                for one in self.params
                if isinstance(one, click.Option) and one.is_flag and name in one.opts
            ),
            None,
        )
        if not said or switch is None:
            return [argument]
        if value.lower() in _TRUE:
            return [name]
        if value.lower() not in _FALSE:
            raise click.BadParameter(f'expected true or false, got "{value}"', ctx, switch)
        # One that has no opposite is off unless it is named.
        return switch.secondary_opts[:1]


def _group(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return what gives a command some options, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    shown = settings.get("default") is not None
    return click.option(*names, **{"show_default": shown, **settings})


# Who works for whom

lease_options = _group(
    _option(
        "--leader-election/--no-leader-election",
        default=True,
        help="Work only for the shards whose Lease this replica holds.",
    ),
    _option(
        "--shards", type=click.IntRange(1, 1000), metavar="N", default=1,
        help="Into how many parts owners are dealt out; the same number for every replica.",
    ),
    _option(
        "--lease-namespace", "--leader-election-namespace", "lease_namespace", metavar="NAME", default=None,
        help="Where the Leases are. Default: the namespace of its own pod, or default.",
    ),
    _option(
        "--lease-name", "--leader-election-id", "lease_name", metavar="NAME", default="lamina",
        help="What the Lease is called; of several shards each has a number more.",
    ),
    _option(
        "--leader-election-resource-lock", type=click.Choice(("leases",)), default="leases", hidden=True,
        help="What says who leads.",
    ),
    _option("--lease-duration", type=TIME, default="15s", help="How long a Lease lasts."),
    _option(
        "--renew-deadline", type=TIME, default="10s",
        help="How long after its last renewal a replica goes on; less than a Lease lasts.",
    ),
    _option("--retry-period", type=TIME, default="2s", help="How often a Lease is asked for, or renewed."),
)  # fmt: skip


def terms(flags: Flags, home: str) -> Terms:
    """Return how Leases are kept; `home` is where they are if nobody says."""
    from lamina.runtime.leases import Terms

    lasts, deadline, retry = flags["lease_duration"], flags["renew_deadline"], flags["retry_period"]
    if deadline >= lasts:
        # A holder that goes on for as long as its Lease lasts works beside whoever takes over.
        raise click.BadParameter(
            f"expected less than the {lasts:g}s of --lease-duration, got {deadline:g}s",
            param_hint="--renew-deadline",
        )
    if retry >= deadline:
        raise click.BadParameter(
            f"expected less than the {deadline:g}s of --renew-deadline, got {retry:g}s",
            param_hint="--retry-period",
        )
    return Terms(
        namespace=flags["lease_namespace"] or home,
        name=flags["lease_name"],
        shards=flags["shards"],
        lasts=lasts,
        deadline=deadline,
        retry=retry,
    )


# How work is done

manner_options = _group(
    _option(
        "--target-label-selector", metavar="SELECTOR", default="", show_default=False,
        help="Which CompositeControllers and DecoratorControllers run here. Default: all.",
    ),
    _option(
        "--workers", type=click.IntRange(1, 1000), metavar="N", default=5,
        help="How many owners a controller works on side by side.",
    ),
    _option(
        "--apply-strategy", type=click.Choice(("dynamic-apply", "server-side-apply")), default="dynamic-apply",
        help="How CompositeControllers and DecoratorControllers make children: by a record on each, or by the server.",
    ),
    _option(
        "--apply-strategy-ssa-field-manager", metavar="NAME", default="metacontroller",
        help="Under which name the server applies them.",
    ),
    _option(
        "--scheduler/--no-scheduler", default=True,
        help="Choose clusters for Placements and look after them; without, another scheduler writes the decisions.",
    ),
    _option(
        "--manifest-limit", "--manifestLimit", "manifest_limit", type=click.IntRange(1), metavar="BYTES",
        default=512_000, help="How much all manifests of a ManifestWork may be together, where writes are judged.",
    ),
    _option(
        "--feature-gates", metavar="NAME=BOOL,...", default="", show_default=False,
        help="What is left out or not: ManifestWorkReplicaSet, CleanUpCompletedManifestWork. Default: nothing is.",
    ),
    _option("--cache-flush-interval", type=TIME, default="30m", help="How long an owner is left alone at most."),
    _option(
        "--discovery-interval", type=TIME, default="30s",
        help="How often is looked which kinds are served, beside whenever a definition changes.",
    ),
)  # fmt: skip


def manner(flags: Flags) -> Manner:
    """Return how families run."""
    from lamina.errors import BadRequest
    from lamina.families.every import Manner, gated
    from lamina.objects.selectors import parse_label_selector

    applies = flags["apply_strategy"] == "server-side-apply"
    try:
        selector = parse_label_selector(flags["target_label_selector"])
    except BadRequest as wrong:
        raise click.BadParameter(wrong.message, param_hint="--target-label-selector") from None
    said = Manner(
        selector=selector,
        workers=flags["workers"],
        applies_as=flags["apply_strategy_ssa_field_manager"] if applies else "",
        flush=timedelta(seconds=flags["cache_flush_interval"]),
        schedules=flags["scheduler"],
        registers=flags["scheduler"],
        manifest_limit=flags["manifest_limit"],
    )
    return gated(said, flags["feature_gates"])


# How often

_RATE, _BURST = click.FloatRange(0), click.IntRange(1)

limit_options = _group(
    _option(
        "--client-go-qps", "qps", type=_RATE, metavar="N", default=0,
        help="How many requests a second are sent to the API server; 0 for as many as it takes.",
    ),
    _option(
        "--client-go-burst", "burst", type=_BURST, metavar="N", default=10,
        help="How many requests are sent at once, where there is such a limit.",
    ),
    _option(
        "--events-qps", type=_RATE, metavar="N", default=1 / 300, show_default="1/300",
        help="How many events a second are told about one object; 0 for all there are.",
    ),
    _option(
        "--events-burst", type=_BURST, metavar="N", default=25,
        help="How many events are told about one object at once.",
    ),
)  # fmt: skip


def requests(flags: Flags) -> Bucket | None:
    """Return how many requests may be sent, or None where nobody minds."""
    from lamina.rates import Bucket

    return Bucket(flags["qps"], flags["burst"]) if flags["qps"] else None


def events(flags: Flags) -> Buckets | None:
    """Return how many events may be told about each object, or None where nobody minds."""
    from lamina.rates import Buckets

    return Buckets(flags["events_qps"], flags["events_burst"]) if flags["events_qps"] else None


# What it says of itself

log_options = _group(
    _option("--log", type=click.Choice(_LEVELS), metavar="LEVEL", default="info", help="Least level of log lines."),
    _option(
        "--log-format", type=click.Choice(("text", "json")), metavar="FORMAT", default="text", help="text or json."
    ),
    # Under these names Metacontroller has them.
    _option("--zap-devel", is_flag=True, hidden=True, help="As --log debug."),
    _option("--zap-encoder", type=click.Choice(("json", "console")), hidden=True, help="As --log-format."),
    _option("--zap-log-level", metavar="LEVEL", hidden=True, help="As --log; a number is debug."),
    _option("--zap-stacktrace-level", metavar="LEVEL", hidden=True, help="Of no effect: mistakes have a traceback."),
)  # fmt: skip


def log_level(flags: Flags) -> str:
    """Return the least level of log lines, by whichever name it was given."""
    said: str | None = flags["zap_log_level"]
    if said is None:
        return "debug" if flags["zap_devel"] else str(flags["log"])
    if said.isascii() and said.isdigit() and int(said) > 0:
        return "debug"
    known = {"panic": "error", "warn": "warning"}.get(said, said)
    if known not in _LEVELS:
        raise click.BadParameter(
            f'expected a level or a number above 0, got "{said}"', param_hint="--zap-log-level"
        )
    return known


def log_format(flags: Flags) -> str:
    """Return how log lines look, by whichever name it was said."""
    return {"json": "json", "console": "text", None: str(flags["log_format"])}[flags["zap_encoder"]]
