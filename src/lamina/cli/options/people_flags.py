"""The roles that users of the command line need, and the options of `lamina rbac` that print them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from lamina.core.model.family import Family
from lamina.core.rbac import Rights
from lamina.core.roles import Subject, binding, role
from lamina.deploy.roles import edit_rights, view_rights
from lamina.errors import SettingsError
from lamina.objects import meta
from lamina.objects.types import Made, Obj

Command = TypeVar("Command", bound=Callable[..., Any])
_READ = ("get", "list", "watch")
_NOT_READ = {
    ("", "namespaces"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("coordination.k8s.io", "leases"),
}
"""What controllers read and no command shows."""


def people_options(command: Command) -> Command:
    """Add the options of roles for users."""
    for option in (
        click.option("--view-only", is_flag=True, help="With --people, print no role to edit."),
        click.option(
            "--group",
            "groups",
            metavar="NAME",
            multiple=True,
            help="Group to bind, with --people; repeatable.",
        ),
        click.option(
            "--user", "users", metavar="NAME", multiple=True, help="User to bind, with --people; repeatable."
        ),
        click.option(
            "-n", "--namespace", metavar="NAME", default="", help="Namespace of the users, with --people."
        ),
        click.option(
            "--people",
            is_flag=True,
            help="Print instead the roles that users of the command line need in the namespace of -n.",
        ),
    ):
        command = option(command)
    return command


def check_people(flags: dict[str, Any]) -> None:
    """Raise SettingsError for options of roles for users that do not go together."""
    if flags["people"]:
        if not flags["namespace"]:
            raise SettingsError("--people needs the namespace of the users", hint="name it with -n NAMESPACE")
        return
    for flag, given in (
        ("--namespace", flags["namespace"]),
        ("--user", flags["users"]),
        ("--group", flags["groups"]),
        ("--view-only", flags["view_only"]),
    ):
        if given:
            raise SettingsError(f"{flag} has no effect without --people", hint="add --people, or omit it")


def people_roles(
    families: Sequence[Family], objects: Sequence[Obj], name: str, flags: dict[str, Any]
) -> list[Made]:
    """
    Return a role to view and one to edit in a namespace, a role for the kinds that are in none, and their bindings.

    To view is to read what the controllers of the families read: get, watch, revisions,
    history and explain. To edit is to write owners: rollback, pin and unpin; and plan,
    because a dry run takes the right to write.
    """
    view, edit, cluster = Rights(), Rights(), Rights()
    view.add("", ("events",), _READ)
    for family in families:
        specs = {meta.name(one): one["spec"] for one in family.definitions()}
        in_none = {
            (spec["group"], spec["names"]["plural"]) for spec in specs.values() if spec["scope"] == "Cluster"
        }
        view.join(family.rights(objects).readable().without(in_none | _NOT_READ))
        edit.join(family.edits(objects).without(in_none))
        for definition in family.shared_definitions:
            spec = specs[definition]
            (cluster if spec["scope"] == "Cluster" else view).add(
                spec["group"], (spec["names"]["plural"],), _READ
            )
    namespace, found = flags["namespace"], _subjects(flags)
    made = [*_roles(view, f"{name}-view", found, namespace)]
    if not flags["view_only"]:
        made += _roles(edit, f"{name}-edit", found, namespace)
    return [*made, *_roles(cluster, f"{name}-view-cluster", found, "", f"{name}-view-{namespace}")]


def _subjects(flags: dict[str, Any]) -> list[Subject]:
    users = [Subject(kind="User", name=one) for one in flags["users"]]
    return users + [Subject(kind="Group", name=one) for one in flags["groups"]]


def _roles(
    rights: Rights, name: str, subjects: Sequence[Subject], namespace: str, binding_name: str = ""
) -> list[Made]:
    """Return a role, and its binding if there is anything to bind."""
    if not rights.rules():
        return []
    made = role(rights, name, namespace)
    return [made, binding(made, subjects, binding_name)] if subjects else [made]


def aggregated_roles(families: Sequence[Family], name: str) -> list[Made]:
    """Return the roles that aggregate to the built-in roles view, edit and admin."""
    view, edit = Rights(), Rights()
    for family in families:
        view.join(view_rights(family))
        edit.join(edit_rights(family))
    return [
        role(
            rights,
            f"{name}-{suffix}",
            labels={f"rbac.authorization.k8s.io/aggregate-to-{one}": "true" for one in roles},
        )
        for suffix, rights, roles in (
            ("view", view, ("view", "edit", "admin")),
            ("edit", edit, ("edit", "admin")),
        )
    ]
