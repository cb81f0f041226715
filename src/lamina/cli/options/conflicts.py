"""Refuses options of `lamina run` that are given and have no effect beside others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from lamina.errors import SettingsError

if TYPE_CHECKING:
    from lamina.core.model.family import Family

_TIMES = ("lease_duration", "renew_deadline", "retry_period")
_OF_FAMILIES = {
    "metacontroller": (
        "target_label_selector",
        "apply_strategy",
        "apply_strategy_ssa_field_manager",
    ),
    "manifestwork": ("scheduler", "manifest_limit"),
    "resourcegraph": (
        "input_revision_storage",
        "default_history_limit",
        "propagation_requeue_interval",
        "allow_crd_deletion",
    ),
}
"""The options that concern one family, which may not run."""
_OF_ORIGINALS = ("upstream_lease", "upstream_lease_namespaces")
_INSTEAD = (
    ("log", ("zap_log_level", "zap_devel")),
    ("log_format", ("zap_encoder",)),
)
"""Options and those that take precedence over them."""


class _Conflict(NamedTuple):
    """Options of which none has an effect, why not, and what to do."""

    options: tuple[str, ...]
    because: str
    hint: str


def check_conflicts(context: click.Context, families: Sequence[Family]) -> None:
    """Raise SettingsError for the first option that is given and has no effect."""
    for conflict in _conflicts(context, [one.name for one in families]):
        for name in conflict.options:
            if _is_given(context, name):
                raise SettingsError(
                    f"{_flag(context, name)} has no effect {conflict.because}", hint=conflict.hint
                )


def _conflicts(context: click.Context, families: Sequence[str]) -> Iterator[_Conflict]:
    flags = context.params
    if not flags["leader_election"]:
        yield _Conflict(("shards",), "with --no-leader-election", "omit one of the two")
        if not flags["upstream_lease"]:
            # The name and the namespace are also the identity of the holder of the originals' Leases.
            both = "with --no-leader-election and --no-upstream-lease"
            yield _Conflict(("lease_name", *_TIMES), both, "omit it, or one of the two")
            if not flags["webhook_url"] and not flags["webhook_service"]:
                without = "with --no-leader-election, with --no-upstream-lease and without a webhook"
                yield _Conflict(("lease_namespace",), without, "omit it, or --no-leader-election")
    if flags["phase_class"] is not None:
        yield _Conflict(
            _OF_ORIGINALS, "with --phase-class", "give it to the `lamina run` that runs the families"
        )
    if not flags["qps"]:
        yield _Conflict(("burst",), "without --client-go-qps", "give --client-go-qps, too, or omit it")
    if not flags["events_qps"]:
        yield _Conflict(("events_burst",), "with --events-qps 0", "omit it, or give a limit above 0")
    if flags["apply_strategy"] == "dynamic-apply":
        yield _Conflict(
            ("apply_strategy_ssa_field_manager",),
            "with --apply-strategy dynamic-apply",
            "omit it, or give --apply-strategy server-side-apply",
        )
    for name, options in _OF_FAMILIES.items():
        if name not in families:
            yield _Conflict(
                options, f"because the family {name} does not run", "omit it, or add the family to --families"
            )
    for name, stronger in _INSTEAD:
        for other in stronger:
            if _is_given(context, other):
                yield _Conflict((name,), f"with {_flag(context, other)}", "omit one of the two")


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _flag(context: click.Context, name: str) -> str:
    """Return an option as it is written: a switch with the name that was given."""
    option = next(one for one in context.command.params if one.name == name)
    names = option.opts if context.params[name] is not False else option.secondary_opts or option.opts
    return next(one for one in names if one.startswith("--"))
