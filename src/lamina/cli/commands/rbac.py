"""`lamina rbac`: prints the minimal RBAC roles for the configured controllers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from lamina.admission.ca import Secrets
from lamina.cli.options.cluster_flags import cluster_options, load_access, with_client
from lamina.client.client import Client
from lamina.core.model.family import Family
from lamina.core.rbac import Rights
from lamina.errors import NotFound, SettingsError, UnknownKind
from lamina.families.registry import FamilyOptions, agents, chosen
from lamina.hooks.sdk import GROUP, PLURALS
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects.types import Made

_RBAC = "rbac.authorization.k8s.io"


@click.command()
@click.argument("hooks", metavar="[HOOKS.PY]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--families", metavar="NAMES", default="all", show_default=True, help="Families, comma-separated."
)
@click.option(
    "--related",
    metavar="RESOURCE",
    multiple=True,
    help="Related resource that customize hooks select, as v1/configmaps; repeatable.",
)
@click.option("--install", is_flag=True, help="Add the rights to install the CustomResourceDefinitions.")
@click.option("--webhook", is_flag=True, help="Add the rights to register and serve the validating webhook.")
@click.option(
    "--scheduler/--no-scheduler",
    default=True,
    show_default=True,
    help="Add the rights to schedule Placements.",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="",
    help="Namespace of the Leases of `lamina run`. Default: that of the account.",
)
@click.option(
    "--agent",
    metavar="CLUSTER",
    help="Print only the roles of this cluster's agent on its hub.",
)
@click.option(
    "--aggregate-roles",
    is_flag=True,
    help="Add roles that aggregate to view, edit and admin, for users of the families' kinds.",
)
@click.option("--people", is_flag=True, hidden=True, help="Old name of --aggregate-roles.")
@click.option("--name", metavar="NAME", default="lamina", show_default=True, help="Name of the role.")
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    default="default/lamina",
    show_default=True,
    help="Service account to bind.",
)
@click.option("-o", "output", type=click.Choice(["yaml", "json"]), default="yaml", help="Output format.")
@cluster_options
def rbac(
    hooks: tuple[Path, ...],
    families: str,
    related: tuple[str, ...],
    install: bool,
    webhook: bool,
    scheduler: bool,
    lease_namespace: str,
    agent: str | None,
    aggregate_roles: bool,
    people: bool,
    name: str,
    account: str,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Print the minimal ClusterRole for `lamina run`, and its binding.

    The rights follow from the controllers that HOOKS.PY declare or, without
    files, from the controllers on the cluster.
    """
    if agent is not None:
        if not agent:
            raise click.BadParameter("expected the name of a cluster, got an empty one", param_hint="--agent")
        _print(_agent_roles(agent, name, account), output)
        click.echo(
            f"not included: the agent's rights on its own cluster, which are {agents().local_rights}",
            err=True,
        )
        return
    selected = chosen(families, FamilyOptions(schedules=scheduler, registers=scheduler))
    needed = _base_rights(install, bool(hooks))
    if hooks:
        needed.join(_family_rights(selected, asyncio.run(_declared_controllers(hooks))))
    else:
        needed.join(
            with_client(load_access(kubeconfig, context), lambda client: _cluster_rights(client, selected))
        )
    for resource in related:
        api_version, _, plural = resource.rpartition("/")
        if not api_version:
            raise SettingsError(f"{resource!r} has no API version", hint="for example v1/configmaps")
        needed.add(api_version.rpartition("/")[0], (plural,), ("get", "list", "watch"))
    if needed.notes and not related:
        click.echo(f"not included: {'; '.join(needed.notes)} (add them with --related)", err=True)
    if webhook:
        needed.join(_webhook_rights(selected))
    objects = _bound(needed, {"name": name}, "ClusterRole", account)
    if webhook:
        objects += _webhook_roles(name, account, lease_namespace)
    if aggregate_roles or people:
        objects += _user_roles(selected, name)
    _print(objects, output)


def _print(objects: list[Made], output: str) -> None:
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    else:
        click.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)


def _base_rights(install: bool, declares: bool) -> Rights:
    """Return the rights that `lamina run` needs whatever the families."""
    needed = Rights()
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch"))
    needed.add("coordination.k8s.io", ("leases",), ("get", "create", "update"))
    if install:
        needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("create", "patch"))
    if declares:
        needed.add(GROUP, PLURALS, ("get", "create", "patch", "delete"))
    return needed


def _family_rights(families: Sequence[Family], objects: list[Made]) -> Rights:
    needed = Rights()
    for family in families:
        needed.join(family.rights(objects))
    return needed


async def _declared_controllers(files: tuple[Path, ...]) -> list[Made]:
    hooks = Hooks(files, log)
    await hooks.start()
    try:
        return list(hooks.manifests)
    finally:
        await hooks.close()


async def _cluster_rights(client: Client, families: Sequence[Family]) -> Rights:
    """Return the rights of the controllers on a cluster; kinds that it does not serve have no controllers."""
    found: list[Made] = []
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            kind = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]
            try:
                found += (await client.list(kind)).items
            except (UnknownKind, NotFound):
                continue
    return _family_rights(families, found)


def _webhook_rights(families: Sequence[Family]) -> Rights:
    """Return the rights to register the webhook and to create SubjectAccessReviews."""
    needed = Rights()
    names = dict.fromkeys(check.configuration for family in families for check in family.checks)
    group, plural = "admissionregistration.k8s.io", ("validatingwebhookconfigurations",)
    needed.add(group, plural, ("create",))
    if names:
        needed.add(group, plural, ("get", "patch"), names=tuple(names))
    needed.add("authorization.k8s.io", ("subjectaccessreviews",), ("create",))
    return needed


def _webhook_roles(name: str, account: str, namespace: str) -> list[Made]:
    """Return the Role, and its binding, for the Secret of the webhook's certificate authority."""
    namespace = namespace or _parse_account(account)[0]
    needed = Rights()
    needed.add("", ("secrets",), ("create",))
    needed.add("", ("secrets",), ("get",), names=(Secrets(namespace=namespace).name,))
    return _bound(needed, {"name": name, "namespace": namespace}, "Role", account)


def _agent_roles(cluster: str, name: str, account: str) -> list[Made]:
    """Return the roles of an agent on its hub, and their bindings."""
    role_name = f"{name}-agent-{cluster}"
    cluster_wide, namespaced = agents().rights(cluster)
    return [
        *_bound(cluster_wide, {"name": role_name}, "ClusterRole", account),
        *_bound(namespaced, {"name": role_name, "namespace": cluster}, "Role", account),
    ]


def _bound(needed: Rights, metadata: Made, kind: str, account: str) -> list[Made]:
    """Return a role and its binding to an account."""
    namespace, account_name = _parse_account(account)
    role: Made = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": needed.rules()}
    binding: Made = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account_name}],
    }
    return [role, binding]


def _parse_account(account: str) -> tuple[str, str]:
    namespace, slash, name = account.partition("/")
    if not slash or not name:
        raise SettingsError(
            f"--account: expected NAMESPACE/NAME, got {account!r}", hint="for example default/lamina"
        )
    return namespace, name


def _user_roles(families: Sequence[Family], name: str) -> list[Made]:
    """Return the roles that aggregate to the built-in roles view, edit and admin."""
    view, edit = Rights(), Rights()
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            if spec["scope"] == "Namespaced":
                kinds = (spec["names"]["plural"],)
                view.add(spec["group"], kinds, ("get", "list", "watch"))
                if definition["metadata"]["name"] in family.user_definitions:
                    edit.add(spec["group"], kinds, ("create", "update", "patch", "delete"))
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"{name}-{suffix}",
                "labels": {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in roles},
            },
            "rules": rights.rules(),
        }
        for suffix, rights, roles in (
            ("view", view, ("view", "edit", "admin")),
            ("edit", edit, ("edit", "admin")),
        )
    ]
