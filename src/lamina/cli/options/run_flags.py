"""Options of `lamina run` and `lamina agent`: leader election, families, rate limits and logs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lamina.families.registry import FamilyOptions
    from lamina.ratelimit import TokenBucket, TokenBuckets
    from lamina.runtime.controller.leader_election_lock import LeaseConfig

Command = TypeVar("Command", bound=Callable[..., Any])
Flags = dict[str, Any]
_LEVELS = ("debug", "info", "warning", "error")


class Time(click.ParamType[float]):
    """A duration as `10s` or `1m30s`, in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from lamina.objects.durations import parse_duration

        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(value).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f'expected a duration above 0, got "{value}"', param, ctx)
        return seconds


TIME = Time()
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


class GoFlagsCommand(click.Command):
    """A command whose boolean flags take values as in Go programs: `--leader-election=false`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded = [one for argument in args for one in self._expand(argument, ctx)]
        return super().parse_args(ctx, expanded)

    def _expand(self, argument: str, ctx: click.Context) -> list[str]:
        name, equals, value = argument.partition("=")
        flag = next(
            (
                one
                for one in self.params
                if isinstance(one, click.Option) and one.is_flag and name in one.opts
            ),
            None,
        )
        if not equals or flag is None:
            return [argument]
        if value.lower() in _TRUE:
            return [name]
        if value.lower() not in _FALSE:
            raise click.BadParameter(f'expected true or false, got "{value}"', ctx, flag)
        # A flag without a negation is off when it is absent.
        return flag.secondary_opts[:1]


def _group(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    shown = settings.get("default") is not None
    return click.option(*names, **{"show_default": shown, **settings})


# Leader election

lease_options = _group(
    _option(
        "--leader-election/--no-leader-election",
        default=True,
        help="Reconcile only the shards whose Lease this replica holds.",
    ),
    _option(
        "--shards", type=click.IntRange(1, 1000), metavar="N", default=1,
        help="Number of shards of owners, each with a Lease; the same for every replica.",
    ),
    _option(
        "--lease-namespace", "--leader-election-namespace", "lease_namespace", metavar="NAME", default=None,
        help="Namespace of the Leases. Default: the namespace of the pod, or default.",
    ),
    _option(
        "--lease-name", "--leader-election-id", "lease_name", metavar="NAME", default="lamina",
        help="Name of the Lease; with several shards, each name ends in a number. With --phase-class the class is added.",
    ),
    _option(
        "--leader-election-resource-lock", type=click.Choice(("leases",)), default="leases", hidden=True,
        help="Kind of the lock.",
    ),
    _option("--lease-duration", type=TIME, default="15s", help="Duration of a Lease."),
    _option(
        "--renew-deadline", type=TIME, default="10s",
        help="Time after the last renewal at which a leader stops; less than the duration of the Lease.",
    ),
    _option("--retry-period", type=TIME, default="2s", help="Period between attempts to acquire or renew a Lease."),
)  # fmt: skip


def lease_config(flags: Flags, namespace: str) -> LeaseConfig:
    """Return the configuration of leader election; `namespace` is the default namespace of the Leases."""
    from lamina.cli.options.phase_class_flags import lease_name
    from lamina.runtime.controller.leader_election_lock import LeaseConfig

    lease_duration, renew_deadline, retry_period = (
        flags["lease_duration"],
        flags["renew_deadline"],
        flags["retry_period"],
    )
    if renew_deadline >= lease_duration:
        # A holder that stops no earlier than its Lease ends can overlap with its successor.
        raise click.BadParameter(
            f"expected less than the {lease_duration:g}s of --lease-duration, got {renew_deadline:g}s",
            param_hint="--renew-deadline",
        )
    if retry_period >= renew_deadline:
        raise click.BadParameter(
            f"expected less than the {renew_deadline:g}s of --renew-deadline, got {retry_period:g}s",
            param_hint="--retry-period",
        )
    return LeaseConfig(
        namespace=flags["lease_namespace"] or namespace,
        name=lease_name(flags["lease_name"], flags["phase_class"]),
        shards=flags["shards"],
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
    )


# Families

family_options = _group(
    _option(
        "--target-label-selector", metavar="SELECTOR", default="", show_default=False,
        help="Label selector of the CompositeControllers and DecoratorControllers to run. Default: all.",
    ),
    _option(
        "--workers", type=click.IntRange(1, 1000), metavar="N", default=5,
        help="Maximum number of concurrent reconciles per controller.",
    ),
    _option(
        "--apply-strategy", type=click.Choice(("dynamic-apply", "server-side-apply")), default="dynamic-apply",
        help="How children are applied: three-way merge with a last-applied annotation, or server-side apply.",
    ),
    _option(
        "--apply-strategy-ssa-field-manager", metavar="NAME", default="metacontroller",
        help="Field manager name for server-side apply of children.",
    ),
    _option(
        "--scheduler/--no-scheduler", default=True,
        help="Schedule Placements and register clusters; disable it if another scheduler writes PlacementDecisions.",
    ),
    _option(
        "--manifest-limit", "--manifestLimit", "manifest_limit", type=click.IntRange(1), metavar="BYTES",
        default=512_000, help="Maximum total size of the manifests of a ManifestWork, checked by the webhook.",
    ),
    _option(
        "--feature-gates", metavar="NAME=BOOL,...", default="", show_default=False,
        help="Feature gates: ManifestWorkReplicaSet, CleanUpCompletedManifestWork, both on by default; "
        "CELOmitFunction, off by default.",
    ),
    _option(
        "--input-revision-storage", type=click.Choice(("CRD", "Inline")), default="CRD",
        help="Where ResourceGraphInputRevisions are kept: as objects, or in the status of their instance.",
    ),
    _option(
        "--default-history-limit", type=click.IntRange(0), metavar="N", default=10,
        help="Revisions kept before the current one where a ResourceGraphDefinition has no historyLimit.",
    ),
    _option(
        "--propagation-requeue-interval", type=TIME, default="30s",
        help="Period at which a closed propagateWhen is evaluated again; a change of an instance triggers it, too.",
    ),
    _option(
        "--allow-crd-deletion", is_flag=True, default=False,
        help="Delete a generated CustomResourceDefinition, and so its objects, with its ResourceGraphDefinition.",
    ),
    _option("--cache-flush-interval", type=TIME, default="30m", help="Resync period: reconcile every owner this often."),
    _option(
        "--discovery-interval", type=TIME, default="30s",
        help="Period of API discovery; a change of a CustomResourceDefinition triggers it, too.",
    ),
)  # fmt: skip


def family_settings(flags: Flags) -> FamilyOptions:
    """Return the options of the families."""
    from lamina.errors import BadRequest
    from lamina.families.registry import FamilyOptions, gated
    from lamina.objects.selectors import parse_label_selector

    applies = flags["apply_strategy"] == "server-side-apply"
    try:
        selector = parse_label_selector(flags["target_label_selector"])
    except BadRequest as error:
        raise click.BadParameter(error.message, param_hint="--target-label-selector") from None
    options = FamilyOptions(
        selector=selector,
        workers=flags["workers"],
        applies_as=flags["apply_strategy_ssa_field_manager"] if applies else "",
        flush=timedelta(seconds=flags["cache_flush_interval"]),
        schedules=flags["scheduler"],
        registers=flags["scheduler"],
        manifest_limit=flags["manifest_limit"],
        inline_inputs=flags["input_revision_storage"] == "Inline",
        history_limit=flags["default_history_limit"],
        propagation_interval=timedelta(seconds=flags["propagation_requeue_interval"]),
        deletes_crds=flags["allow_crd_deletion"],
    )
    return gated(options, flags["feature_gates"])


# Rate limits

_RATE, _BURST = click.FloatRange(0), click.IntRange(1)

limit_options = _group(
    _option(
        "--client-go-qps", "qps", type=_RATE, metavar="N", default=0,
        help="Requests per second to the API server; 0 for no limit.",
    ),
    _option(
        "--client-go-burst", "burst", type=_BURST, metavar="N", default=10,
        help="Burst of requests above --client-go-qps.",
    ),
    _option(
        "--events-qps", type=_RATE, metavar="N", default=1 / 300, show_default="1/300",
        help="Events per second about one object; 0 for no limit.",
    ),
    _option(
        "--events-burst", type=_BURST, metavar="N", default=25,
        help="Burst of events about one object above --events-qps.",
    ),
)  # fmt: skip


def request_limit(flags: Flags) -> TokenBucket | None:
    """Return the rate limit of requests; None for no limit."""
    from lamina.ratelimit import TokenBucket

    return TokenBucket(flags["qps"], flags["burst"]) if flags["qps"] else None


def event_limit(flags: Flags) -> TokenBuckets | None:
    """Return the rate limit of events per object; None for no limit."""
    from lamina.ratelimit import TokenBuckets

    return TokenBuckets(flags["events_qps"], flags["events_burst"]) if flags["events_qps"] else None


# Logs

log_options = _group(
    _option("--log", type=click.Choice(_LEVELS), metavar="LEVEL", default="info",
            help="Minimum log level: debug, info, warning or error."),
    _option(
        "--log-format", type=click.Choice(("text", "json")), metavar="FORMAT", default="text", help="Log format: text or json."
    ),
    # Metacontroller's names of the same options.
    _option("--zap-devel", is_flag=True, hidden=True, help="Same as --log debug."),
    _option("--zap-encoder", type=click.Choice(("json", "console")), hidden=True, help="Same as --log-format."),
    _option("--zap-log-level", metavar="LEVEL", hidden=True, help="Same as --log; a number is debug."),
    _option("--zap-stacktrace-level", metavar="LEVEL", hidden=True, help="No effect: errors are logged with a traceback."),
)  # fmt: skip


def log_level(flags: Flags) -> str:
    """Return the minimum log level; the zap options take precedence."""
    zap: str | None = flags["zap_log_level"]
    if zap is None:
        return "debug" if flags["zap_devel"] else str(flags["log"])
    if zap.isascii() and zap.isdigit() and int(zap) > 0:
        return "debug"
    level = {"panic": "error", "warn": "warning"}.get(zap, zap)
    if level not in _LEVELS:
        raise click.BadParameter(
            f'expected a level or a number above 0, got "{zap}"', param_hint="--zap-log-level"
        )
    return level


def log_format(flags: Flags) -> str:
    """Return the log format; --zap-encoder takes precedence."""
    return {"json": "json", "console": "text", None: str(flags["log_format"])}[flags["zap_encoder"]]
