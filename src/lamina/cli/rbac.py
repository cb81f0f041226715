"""`lamina rbac`: the least role that what is configured needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from lamina.admission.authority import Secrets
from lamina.admission.registration import NAME
from lamina.cli.reaching import cluster_options, reach, with_client
from lamina.client.client import Client
from lamina.core.family import Family
from lamina.core.rights import Rights
from lamina.errors import NotFound, SettingsError, UnknownKind
from lamina.families.every import Manner, chosen
from lamina.families.manifestwork.spoke import rights as agent_rights
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects.types import Made

_RBAC = "rbac.authorization.k8s.io"
_ON_ITS_OWN = (
    "not in it: what the agent needs on its own cluster, which is whatever its manifests need, beside "
    "appliedmanifestworks, clusterclaims and nodes; usually it is cluster-admin there"
)


@click.command()
@click.argument("hooks", metavar="[HOOKS.PY]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--families", metavar="NAMES", default="all", show_default=True, help="Of which families.")
@click.option(
    "--related",
    metavar="RESOURCE",
    multiple=True,
    help="What customize hooks ask to see, as v1/configmaps; may be given again.",
)
@click.option("--install", is_flag=True, help="Let it install the families' kinds too.")
@click.option("--webhook", is_flag=True, help="Let it be asked about writes too, and keep what that takes.")
@click.option(
    "--scheduler/--no-scheduler",
    default=True,
    show_default=True,
    help="Let it choose clusters for Placements too, as it does unless it is told otherwise.",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="",
    help="The namespace that `lamina run` is given as its own. Default: the one of the account.",
)
@click.option(
    "--agent",
    metavar="CLUSTER",
    help="Print what the agent of this cluster needs on its hub instead, and nothing else.",
)
@click.option(
    "--people",
    is_flag=True,
    help="Let people who may view or edit a namespace view the families' own kinds in it, and edit what is theirs to.",
)
@click.option("--name", metavar="NAME", default="lamina", show_default=True, help="What the role is called.")
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    default="default/lamina",
    show_default=True,
    help="Which service account is bound to it.",
)
@click.option("-o", "output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to print it.")
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
    people: bool,
    name: str,
    account: str,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Print the ClusterRole that `lamina run` needs, and the binding that goes with it.

    What is needed follows from the controllers that HOOKS.PY declare, and
    without one from those on the cluster.
    """
    if agent is not None:
        if not agent:
            raise click.BadParameter("expected the name of a cluster, got nothing", param_hint="--agent")
        _print(_of_agent(agent, name, account), output)
        click.echo(_ON_ITS_OWN, err=True)
        return
    wanted = chosen(families, Manner(schedules=scheduler, registers=scheduler))
    needed = _process(install, bool(hooks))
    if hooks:
        needed.join(_of(wanted, asyncio.run(_declared(hooks))))
    else:
        needed.join(with_client(reach(kubeconfig, context), lambda client: _configured(client, wanted)))
    for written in related:
        api_version, _, plural = written.rpartition("/")
        if not api_version:
            raise SettingsError(
                f"{written!r} is no resource with its version", hint="for example v1/configmaps"
            )
        needed.add(api_version.rpartition("/")[0], (plural,), ("get", "list", "watch"))
    if needed.notes and not related:
        click.echo(f"not in it: {'; '.join(needed.notes)} (say so with --related)", err=True)
    if webhook:
        needed.join(_judging())
    made = _objects(needed, name, account)
    if webhook:
        made += _at_home(name, account, lease_namespace)
    if people:
        made += _for_people(wanted, name)
    _print(made, output)


def _print(made: list[Made], output: str) -> None:
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}, indent=2))
    else:
        click.echo(yaml.safe_dump_all(made, sort_keys=False), nl=False)


def _process(install: bool, declares: bool) -> Rights:
    """Return what any process of ours needs, whatever it runs."""
    needed = Rights()
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch"))
    needed.add("coordination.k8s.io", ("leases",), ("get", "create", "update"))
    if install:
        needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("create", "patch"))
    if declares:
        own = ("compositecontrollers", "decoratorcontrollers")
        needed.add("metacontroller.k8s.io", own, ("get", "create", "patch", "delete"))
    return needed


def _of(families: Sequence[Family], objects: list[Made]) -> Rights:
    needed = Rights()
    for family in families:
        needed.join(family.rights(objects))
    return needed


async def _declared(files: tuple[Path, ...]) -> list[Made]:
    hooks = Hooks(files, log)
    await hooks.start()
    try:
        return list(hooks.manifests)
    finally:
        await hooks.close()


async def _configured(client: Client, families: Sequence[Family]) -> Rights:
    """Return what the controllers on a cluster need; a kind that it does not serve has none."""
    found: list[Made] = []
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            kind = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]
            try:
                found += (await client.list(kind)).items
            except (UnknownKind, NotFound):
                continue
    return _of(families, found)


def _judging() -> Rights:
    """Return what it takes to be asked about writes: to say where, and to ask who may do what."""
    needed = Rights()
    group, plural = "admissionregistration.k8s.io", ("validatingwebhookconfigurations",)
    needed.add(group, plural, ("create",))
    needed.add(group, plural, ("get", "patch"), names=(NAME,))
    needed.add("authorization.k8s.io", ("subjectaccessreviews",), ("create",))
    return needed


def _at_home(name: str, account: str, namespace: str) -> list[Made]:
    """Return what lets it keep its own authority, in its own namespace and nowhere else."""
    namespace = namespace or _who(account)[0]
    needed = Rights()
    needed.add("", ("secrets",), ("create",))
    needed.add("", ("secrets",), ("get",), names=(Secrets(namespace=namespace).name,))
    return _bound(needed, {"name": name, "namespace": namespace}, "Role", account)


def _of_agent(cluster: str, name: str, account: str) -> list[Made]:
    """Return the roles of an agent on its hub; the agents of other clusters have others."""
    called = f"{name}-agent-{cluster}"
    return [
        *_bound(agent_rights.beyond_it(cluster), {"name": called}, "ClusterRole", account),
        *_bound(agent_rights.in_its_namespace(), {"name": called, "namespace": cluster}, "Role", account),
    ]


def _objects(needed: Rights, name: str, account: str) -> list[Made]:
    return _bound(needed, {"name": name}, "ClusterRole", account)


def _bound(needed: Rights, metadata: Made, kind: str, account: str) -> list[Made]:
    """Return a role, and what gives it to an account."""
    namespace, who = _who(account)
    role: Made = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": needed.rules()}
    binding: Made = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": who}],
    }
    return [role, binding]


def _who(account: str) -> tuple[str, str]:
    namespace, slash, who = account.partition("/")
    if not slash or not who:
        raise SettingsError(f"{account!r} is no service account", hint="for example default/lamina")
    return namespace, who


def _for_people(families: Sequence[Family], name: str) -> list[Made]:
    """Return the roles that are added to the usual ones of whoever views, edits or administers a namespace."""
    view, edit = Rights(), Rights()
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            if spec["scope"] == "Namespaced":
                kinds = (spec["names"]["plural"],)
                view.add(spec["group"], kinds, ("get", "list", "watch"))
                if definition["metadata"]["name"] in family.edited:
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
