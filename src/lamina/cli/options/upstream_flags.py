"""Options of `lamina run`, `lamina rbac` and `lamina uninstall` about the Leases of the originals of the families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamina.errors import NotFound, SettingsError
from lamina.objects.types import Ref

if TYPE_CHECKING:
    from lamina.client.client import Client
    from lamina.core.model.family import Family
    from lamina.core.model.upstream_lease import UpstreamLease

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTION = "--upstream-lease-namespace"


def upstream_namespace_option(command: Command) -> Command:
    """Add the option that names the namespaces of the originals' Leases."""
    option = click.option(
        _OPTION,
        "upstream_lease_namespaces",
        metavar="[FAMILY=]NAME",
        multiple=True,
        help="Namespace of the originals' Leases, for all families or for one; repeatable. Default: that "
        "of the original's usual installation.",
    )
    return option(command)


def upstream_options(command: Command) -> Command:
    """Add the options that select the Leases of the originals."""
    for option in (
        upstream_namespace_option,
        click.option(
            "--upstream-lease/--no-upstream-lease",
            default=True,
            show_default=True,
            help="Also hold the Leases of the families' originals, and wait while an original holds one.",
        ),
    ):
        command = option(command)
    return command


def upstream_leases(
    flags: dict[str, Any], families: Sequence[Family]
) -> dict[str, tuple[UpstreamLease, ...]]:
    """Return the Leases of the originals by the names of the families; none where they are switched off."""
    from msgspec.structs import replace

    stated = _namespaces(flags["upstream_lease_namespaces"], [one.name for one in families])
    if not flags["upstream_lease"]:
        if stated:
            raise SettingsError(
                f"{_OPTION} has no effect with --no-upstream-lease", hint="omit one of the two"
            )
        return {}
    return {
        family.name: tuple(
            replace(one, namespace=stated.get(family.name) or stated.get("") or one.namespace)
            for one in family.upstream_leases
        )
        for family in families
    }


def stated_namespaces(flags: dict[str, Any]) -> frozenset[str]:
    """Return the namespaces that the options name."""
    return frozenset(value.rpartition("=")[2] for value in flags["upstream_lease_namespaces"])


async def check_namespaces(client: Client, flags: dict[str, Any]) -> None:
    """Raise SettingsError if a namespace that an option names does not exist: no original would be noticed there."""
    for namespace in sorted(stated_namespaces(flags)):
        try:
            await client.get(Ref("v1", "Namespace", "", namespace))
        except NotFound:
            raise SettingsError(
                f"{_OPTION}: the namespace {namespace} does not exist",
                hint="name the namespace that the original runs in, or omit the option for its usual one",
            ) from None


def _namespaces(values: Sequence[str], families: Sequence[str]) -> dict[str, str]:
    """Return namespaces by the names of families; that of all families has the empty name."""
    stated: dict[str, str] = {}
    for value in values:
        family, equals, namespace = value.rpartition("=")
        if not namespace or (equals and not family):
            raise click.BadParameter(f'expected NAME or FAMILY=NAME, got "{value}"', param_hint=_OPTION)
        if family and family not in families:
            raise click.BadParameter(
                f"the family {family} is not selected; selected are {', '.join(families) or 'none'}",
                param_hint=_OPTION,
            )
        if stated.setdefault(family, namespace) != namespace:
            raise click.BadParameter(
                f"two namespaces for {family or 'all families'}, {stated[family]} and {namespace}",
                param_hint=_OPTION,
            )
    return stated
