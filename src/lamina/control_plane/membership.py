"""
The administrator's side of joining a hub: the bootstrap token, the acceptance of a cluster, and its end.

What a cluster is granted, and which requests are those of its agent, is decided by the
family's `Joining` value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from lamina.client.client import Client
from lamina.control_plane.hub import check_name, leave
from lamina.core import csr
from lamina.core.model.agents import Agents
from lamina.errors import AlreadyExists, MethodNotAllowed, NotFound, SettingsError, UnknownKind
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

_REQUESTS = csr.REQUEST_VERSION, csr.REQUEST.kind
_POLL = 0.5
_MANAGER = "lamina"


async def bootstrap_token(agents: Agents, hub: Client, seconds: int) -> str:
    """Return a token with which clusters may ask to join, and nothing else."""
    await _check_hub(agents, hub)
    for obj in agents.joining.bootstrap:
        await hub.apply(obj, manager=_MANAGER, force=True)
    account = meta.ref(agents.joining.bootstrap[-1])
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    try:
        issued = await hub.post(account, body, subresource="token")
    except (NotFound, MethodNotAllowed):
        raise SettingsError(
            "this server issues no tokens of service accounts",
            hint="the embedded server has none: use its kubeconfig as the bootstrap kubeconfig",
        ) from None
    return str(issued["status"]["token"])


async def accept(agents: Agents, hub: Client, name: str, request: str = "") -> Sequence[str]:
    """
    Accept a cluster: grant its agent its rights, and approve its requests; return these and their requesters.

    A request for anything but the user and the groups of this cluster is an error, and
    so are two requests with different keys unless one is named with `request`. Then
    nothing is approved.
    """
    check_name(agents, name)
    await _check_hub(agents, hub)
    try:
        cluster = await hub.get(agents.cluster(name))
    except NotFound:
        raise SettingsError(
            f"cluster {name!r} has not asked to join",
            hint=f"start `lamina agent --cluster {name} --bootstrap-kubeconfig FILE` on it",
        ) from None
    found = (await hub.list(_REQUESTS, labels=agents.joining.requests(name))).items
    pending = _chosen(agents, name, [one for one in found if csr.is_pending(one)], request)
    namespace, *roles = agents.joining.grants(name)
    # One that exists stays as it is: with the label of the cluster it would be deleted with the cluster.
    with suppress(AlreadyExists):
        await hub.create(namespace)
    for obj in roles:
        await hub.apply(obj, manager=_MANAGER, force=True)
    if not agents.is_accepted(cluster):
        await hub.patch(meta.ref(cluster), agents.joining.acceptance(cluster))
    # Last: the certificate is of use once its rights are there.
    for one in pending:
        await hub.update(
            csr.approved(one, reason="LaminaAccepted", message="accepted by lamina clusters accept"),
            subresource="approval",
        )
    return [_with_requester(one) for one in pending]


def _chosen(agents: Agents, name: str, pending: Sequence[Made], request: str) -> Sequence[Made]:
    """Return the requests of a cluster that are to be approved: the named one, or all if they are of one agent."""
    if request:
        pending = [one for one in pending if meta.name(one) == request]
        if not pending:
            raise SettingsError(f"cluster {name!r} has no request {request!r} that waits for approval")
    for one in pending:
        if wrong := agents.joining.mismatch(name, one):
            raise SettingsError(
                f"request {_with_requester(one)}, is not one for the agent of {name}: {wrong}",
                hint=f"deny it with `kubectl certificate deny {meta.name(one)}`",
            )
    first = [one for one in pending if not agents.joining.is_renewal(name, one)]
    # A request that was sent again after a lost response has the same key.
    if len({csr.pem_of(one) for one in first}) > 1:
        shown = "; ".join(map(_with_requester, first))
        raise SettingsError(
            f"cluster {name!r} has several requests that wait for approval: {shown}",
            hint="approve one with --request NAME; the log of the agent names the one that it has sent",
        )
    return pending


def _with_requester(request: Obj) -> str:
    return f"{meta.name(request)}, requested by {csr.requested_by(request)}"


async def detach(agents: Agents, hub: Client, name: str, *, force: bool, seconds: float) -> None:
    """
    Remove a cluster from its hub, once its agent has removed the objects of its works.

    With `force` works are released without that, and their objects stay on the cluster.
    """
    await _check_hub(agents, hub)
    # A detachment that was interrupted has left the roles, or works that the agent has not removed.
    known = [ref for ref in (agents.cluster(name), *_granted(agents, name)) if await _exists(hub, ref)]
    if not known and not (await hub.list(agents.assigned, name)).items:
        raise SettingsError(f"cluster {name!r} is not registered with the hub")
    # First: no further work is created for a cluster that is not registered.
    with suppress(NotFound):
        await hub.delete(agents.cluster(name))
    for work in (await hub.list(agents.assigned, name)).items:
        with suppress(NotFound):
            await hub.delete(meta.ref(work))
    if not force:
        await _wait_removed(agents, hub, name, seconds)
    await leave(agents, hub, name)
    for ref in _granted(agents, name):
        with suppress(NotFound):
            await hub.delete(ref)
    for request in (await hub.list(_REQUESTS, labels=agents.joining.requests(name))).items:
        with suppress(NotFound):
            await hub.delete(meta.ref(request))


async def _exists(hub: Client, ref: Ref) -> bool:
    try:
        await hub.get(ref)
    except NotFound:
        return False
    return True


def _granted(agents: Agents, name: str) -> list[Ref]:
    """Return what a cluster was granted, without its namespace, which is deleted if the hub made it."""
    return [
        ref for obj in reversed(agents.joining.grants(name)) if (ref := meta.ref(obj)).kind != "Namespace"
    ]


async def _wait_removed(agents: Agents, hub: Client, name: str, seconds: float) -> None:
    """Wait until no work of a cluster is left; SettingsError names those that are."""
    for _ in range(max(round(seconds / _POLL), 1)):
        left = (await hub.list(agents.assigned, name)).items
        if not left:
            return
        await asyncio.sleep(_POLL)
    names = ", ".join(map(meta.name, left))
    raise SettingsError(
        f"the agent of {name} has not removed {len(left)} works within {seconds:g}s: {names}",
        # An agent that is started now without --join does not find its cluster on the hub, and ends.
        hint="run the command again once a running agent reaches the hub, "
        "or use --force to leave their objects on the cluster",
    )


async def _check_hub(agents: Agents, hub: Client) -> None:
    ref = agents.cluster("any")
    try:
        await hub.kind(ref.api_version, ref.kind)
    except UnknownKind:
        raise SettingsError(
            f"the server is no hub: it serves no {ref.kind}",
            hint=f"make it one with `lamina run --families {agents.family}`",
        ) from None
