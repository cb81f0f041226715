"""`lamina rbac`: prints the minimal RBAC roles for the configured controllers, with a service account that has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml

from lamina.cli.options.cluster_flags import NoCluster, cluster_options, load_access, with_client
from lamina.cli.options.people_flags import aggregated_roles, check_people, people_options, people_roles
from lamina.cli.options.upstream_flags import stated_namespaces, upstream_leases, upstream_options
from lamina.client.client import Client
from lamina.core.model.family import Family
from lamina.core.rbac import Rights
from lamina.core.roles import Subject, bound, service_account
from lamina.deploy import roles
from lamina.errors import NotFound, SettingsError, UnknownKind
from lamina.families.registry import FamilyOptions, agents, chosen
from lamina.hooks.sdk import GROUP, PLURALS
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.leader_election import lease_names


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
    "--leader-election-namespace",
    "lease_namespace",
    metavar="NAME",
    default="",
    help="Namespace of the Leases of `lamina run`. Default: that of the service account.",
)
@click.option(
    "--lease-name",
    "--leader-election-id",
    "lease_name",
    metavar="NAME",
    default="lamina",
    show_default=True,
    help="Name of the Lease, as for `lamina run`.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of shards, each with a Lease, as for `lamina run`.",
)
@upstream_options
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
@people_options
@click.option("--name", metavar="NAME", default="lamina", show_default=True, help="Name of the roles.")
@click.option(
    "--service-account",
    "--account",
    "account",
    metavar="NAMESPACE/NAME",
    default="default/lamina",
    show_default=True,
    help="Service account to print and to bind.",
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
    lease_name: str,
    shards: int,
    agent: str | None,
    aggregate_roles: bool,
    name: str,
    account: str,
    output: str,
    kubeconfig: Path | None,
    context: str,
    **flags: Any,
) -> None:
    """
    Print a service account for `lamina run`, with the roles that it needs and their bindings.

    `lamina rbac --service-account NAMESPACE/NAME | kubectl apply -f -` is sufficient
    where the namespace exists. The rights follow from the controllers that HOOKS.PY
    declare and from those on the cluster. Leases and the webhook's Secret are in
    Roles of their namespace; those of the families' originals are included where
    their namespace exists.

    With --people, print instead what users of this command line need in a namespace.
    """
    subject = _subject(account)
    if agent is not None:
        if not agent:
            raise click.BadParameter("expected the name of a cluster, got an empty one", param_hint="--agent")
        _print(_agent_roles(agent, name, subject), output)
        click.echo(
            f"not included: the agent's rights on its own cluster, which are {agents().local_rights}",
            err=True,
        )
        return
    selected = chosen(families, FamilyOptions(schedules=scheduler, registers=scheduler))
    leases = [one for found in upstream_leases(flags, selected).values() for one in found]
    found = _read_cluster(selected, [one.namespace for one in leases], hooks, kubeconfig, context)
    check_people(flags)
    if flags["people"]:
        _print(people_roles(selected, found.controllers, name, flags), output)
        return
    needed = roles.base_rights()
    if install:
        needed.join(roles.install_rights())
    if hooks:
        needed.add(GROUP, PLURALS, ("get", "create", "patch", "delete"))
    if leases:
        # Where the namespace of an original's Lease does not exist, the Lease is not needed.
        needed.add("", ("namespaces",), ("get",), names=sorted({one.namespace for one in leases}))
    needed.join(_family_rights(selected, found.controllers))
    for resource in related:
        api_version, _, plural = resource.rpartition("/")
        if not api_version:
            raise SettingsError(f"{resource!r} has no API version", hint="for example v1/configmaps")
        needed.add(api_version.rpartition("/")[0], (plural,), ("get", "list", "watch"))
    if needed.notes and not related:
        click.echo(f"not included: {'; '.join(needed.notes)} (add them with --related)", err=True)
    if webhook:
        needed.join(roles.webhook_rights(selected))
    own = lease_namespace or subject.namespace
    inside = {own: roles.lease_rights(lease_names(lease_name, shards))}
    if webhook:
        inside[own].join(roles.secret_rights())
    known = {*found.namespaces, *stated_namespaces(flags)}
    for one in leases:
        if one.namespace in known:
            inside.setdefault(one.namespace, Rights()).join(roles.lease_rights((one.name,)))
    if absent := sorted({one.namespace for one in leases} - known):
        click.echo(f"not included: the Leases of originals in {', '.join(absent)}, {found.unknown}", err=True)
    objects = [service_account(subject), *bound(needed, name, subject)]
    for namespace, rights in inside.items():
        objects += bound(rights, name, subject, namespace)
    if aggregate_roles:
        objects += aggregated_roles(selected, name)
    _print(objects, output)


def _print(objects: list[Made], output: str) -> None:
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    else:
        click.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)


class _Found(NamedTuple):
    """What rights depend on: the controllers, and which namespaces of originals' Leases exist."""

    controllers: list[Made]
    namespaces: tuple[str, ...] = ()
    unknown: str = "because the namespace does not exist"
    """Why another namespace is not among them."""


def _read_cluster(
    families: Sequence[Family],
    namespaces: Sequence[str],
    hooks: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str,
) -> _Found:
    """Return the controllers that files declare, and those on the cluster, if one is configured, that they do not."""
    declared = asyncio.run(_declared_controllers(hooks)) if hooks else []
    try:
        access = load_access(kubeconfig, context)
    except NoCluster as error:
        if not hooks:
            raise
        click.echo(f"not included: the controllers on the cluster, because {error}", err=True)
        return _Found(declared, unknown=f"because {error}")

    async def read(client: Client) -> _Found:
        replaced = {meta.ref(one) for one in declared}
        found = await _cluster_controllers(client, families)
        controllers = [*declared, *(one for one in found if meta.ref(one) not in replaced)]
        return _Found(controllers, await _existing(client, namespaces))

    return with_client(access, read)


async def _existing(client: Client, namespaces: Sequence[str]) -> tuple[str, ...]:
    """Return which of some namespaces exist."""
    found = []
    for name in dict.fromkeys(namespaces):
        with suppress(NotFound):
            found.append(meta.name(await client.get(Ref("v1", "Namespace", "", name))))
    return tuple(found)


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


async def _cluster_controllers(client: Client, families: Sequence[Family]) -> list[Made]:
    """Return the objects of the families on a cluster; kinds that it does not serve have none."""
    found: list[Made] = []
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            kind = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]
            try:
                found += (await client.list(kind)).items
            except (UnknownKind, NotFound):
                continue
    return found


def _agent_roles(cluster: str, name: str, subject: Subject) -> list[Made]:
    """Return the roles of an agent on its hub, and their bindings."""
    role_name = f"{name}-agent-{cluster}"
    cluster_wide, namespaced = agents().rights(cluster)
    return [*bound(cluster_wide, role_name, subject), *bound(namespaced, role_name, subject, cluster)]


def _subject(account: str) -> Subject:
    namespace, slash, name = account.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise SettingsError(
            f"--service-account: expected NAMESPACE/NAME, got {account!r}", hint="for example default/lamina"
        )
    return Subject(kind="ServiceAccount", namespace=namespace, name=name)
