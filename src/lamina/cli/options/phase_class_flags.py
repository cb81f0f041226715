"""Options of `lamina run` that serve a phase class: its objects are on another cluster than its ObjectSetPhases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from lamina.errors import LaminaError, SettingsError

if TYPE_CHECKING:
    from lamina.client.client import Client
    from lamina.client.kubeconfig.read import Access
    from lamina.core.model.controller import AnyController
    from lamina.core.model.family import Family
    from lamina.ratelimit import TokenBuckets
    from lamina.runtime.controller.manager import Manager
    from lamina.runtime.controller.worker import Leadership
    from lamina.runtime.metrics.recorder import Recorder

Command = TypeVar("Command", bound=Callable[..., Any])
_TARGET = "name the kubeconfig of the cluster that is to have the objects, with --target-kubeconfig FILE"
_ALLOWED = "allowed are at most 63 letters, digits, dashes, underscores and dots, as in the value of a label"


class ServedClass(NamedTuple):
    """A phase class: the access to the cluster of its objects, and the controllers that create them there."""

    name: str
    target: Access
    controllers: tuple[AnyController, ...]
    families: tuple[Family, ...]
    """The families that have controllers for it."""

    def manager(
        self,
        target: Client,
        hub: Client,
        lead: Leadership | None,
        meters: Callable[[str], Recorder],
        *,
        events: TokenBuckets | None,
        discovery_period: float,
    ) -> Manager:
        """Return the manager of its controllers, ready to be run."""
        from lamina.clock import WallClock
        from lamina.control_plane.cluster_controllers import manager_for

        return manager_for(
            self.name,
            target,
            hub,
            self.controllers,
            WallClock(),
            lead,
            meters,
            events=events,
            discovery_period=discovery_period,
        )


def phase_class_options(command: Command) -> Command:
    """Add the options that select a phase class and the cluster of its objects."""
    for option in (
        click.option(
            "--target-context", metavar="NAME", default="", help="Context of the target's kubeconfig."
        ),
        click.option(
            "--target-kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Kubeconfig of the cluster that has the objects of --phase-class.",
        ),
        click.option(
            "--phase-class",
            metavar="NAME",
            help="Run only the controller of the ObjectSetPhases of this class, and apply their objects to "
            "the cluster of --target-kubeconfig.",
        ),
    ):
        command = option(command)
    return command


def served_class(
    flags: dict[str, Any], families: Sequence[Family], hooks: Sequence[Path]
) -> ServedClass | None:
    """Return the phase class that the flags select, if they select one; SettingsError names a wrong flag."""
    from lamina.client.kubeconfig.read import read_kubeconfig
    from lamina.control_plane.cluster_controllers import controllers_for
    from lamina.objects.names import label_value

    name, file, context = flags["phase_class"], flags["target_kubeconfig"], flags["target_context"]
    if name is None:
        for flag, given in (("--target-kubeconfig", file), ("--target-context", context)):
            if given:
                raise SettingsError(
                    f"{flag} has no effect without --phase-class",
                    hint="name the class to serve with --phase-class NAME, or omit the flag",
                )
        return None
    if not name or label_value(name):
        raise SettingsError(f'--phase-class: "{name}" is no name of a class', hint=_ALLOWED)
    if file is None:
        raise SettingsError("--phase-class needs the cluster of its objects", hint=_TARGET)
    if hooks:
        raise SettingsError(
            f"--phase-class runs no hooks, and {hooks[0]} is given",
            hint="give hooks files to the `lamina run` that runs the families",
        )
    having = tuple(one for one in families if one.cluster_controllers is not None)
    if not having:
        raise SettingsError(
            "--phase-class: none of the selected families has phase classes",
            hint="omit --families, or add objectset to it",
        )
    controllers = controllers_for(having, name)
    if not controllers:
        raise SettingsError(
            f"--phase-class: the class {name} is served by the `lamina run` that runs the families",
            hint="choose another name for the class of phases whose objects are on another cluster",
        )
    return ServedClass(name, read_kubeconfig(file, context, hint=_TARGET), controllers, having)


async def wait_target_reachable(client: Client, target: Access) -> None:
    """Wait until the cluster of the objects responds; an error names the flags that lead to it."""
    from lamina.control_plane.install import wait_reachable

    try:
        await wait_reachable(client)
    except LaminaError as error:
        raise SettingsError(
            f"the cluster of --target-kubeconfig, {target.server}, cannot be used: {error}",
            hint="check that it is running, and the file and the context that --target-kubeconfig and "
            "--target-context name",
        ) from None


def lease_name(name: str, phase_class: str | None) -> str:
    """Return the name of a Lease; that of a phase class is never that of the families, nor of another class."""
    from lamina.objects.digest import short
    from lamina.objects.names import subdomain

    if phase_class is None:
        return name
    part = phase_class if not subdomain(phase_class) else short(phase_class)
    # Not at the end: that of another class could be this one with the number of a shard.
    return f"{name}-{part}-phase-class"
