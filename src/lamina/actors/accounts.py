"""What every namespace has: a service account called `default`, and the certificate to know the server by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import Action, Create, Patch, Plan, change, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World, card
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

ACCOUNT = "default"
ROOT = "kube-root-ca.crt"

_DESCRIPTION = "kubernetes.io/description"
_DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
    "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


class View(Struct, frozen=True, kw_only=True):
    """A namespace that is there to stay, and what it has."""

    namespace: str
    has_account: bool
    root: Obj | None


def gather(world: World, ref: Ref) -> View | None:
    namespace = world.get(ref)
    if namespace is None or meta.is_deleting(namespace):
        return None
    return View(
        namespace=ref.name,
        has_account=world.get(Ref("v1", "ServiceAccount", ref.name, ACCOUNT)) is not None,
        root=world.get(Ref("v1", "ConfigMap", ref.name, ROOT)),
    )


@lru_cache(maxsize=16)
def accounts(authority: str) -> Controller[View]:
    """Return the controller that gives every namespace its account, and this certificate in PEM."""

    def plan(view: View, answers: Answers, now: datetime) -> Plan:
        actions: list[Action] = []
        if not view.has_account:
            actions.append(Create(obj=_account(view.namespace)))
        if view.root is None:
            actions.append(Create(obj=_root(view.namespace, authority)))
        elif correction := _correction(view.root, authority):
            actions.append(correction)
        return one_stage(
            "furnish it", actions, because="every namespace has an account and the root certificate"
        )

    return Controller(
        name="accounts",
        watches=(
            Watch(selects=only("", "Namespace"), concerns=itself, keep=card, metadata_only=True),
            Watch(selects=only("", "ServiceAccount"), concerns=_missed, keep=card, metadata_only=True),
            Watch(selects=only("", "ConfigMap"), concerns=_missed, keep=_content, named=ROOT),
        ),
        gather=gather,
        plan=plan,
        manager=MANAGER,
    )


def _account(namespace: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": namespace},
    }


def _root(namespace: str, authority: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT, "namespace": namespace, "annotations": {_DESCRIPTION: _DESCRIBED}},
        "data": {"ca.crt": authority},
    }


def _correction(root: Obj, authority: str) -> Patch | None:
    """Return what puts a certificate right that somebody has changed."""
    data = root.get("data") or {}
    patch: Made = {}
    if data != {"ca.crt": authority}:
        patch["data"] = {**dict.fromkeys(data), "ca.crt": authority}
    if not meta.annotations(root).get(_DESCRIPTION):
        patch["metadata"] = {"annotations": {_DESCRIPTION: _DESCRIBED}}
    return change(root, patch) if patch else None


def _content(obj: Obj) -> Obj:
    """Keep who it is, what describes it and what it holds."""
    kept = card(obj)
    annotations = {key: value for key, value in meta.annotations(obj).items() if key == _DESCRIPTION}
    return {**kept, "metadata": {**kept["metadata"], "annotations": annotations}, "data": obj.get("data")}


def _missed(world: World, change: Change) -> Iterable[Ref]:
    """An account or certificate that is gone or has changed concerns its namespace; one that appears does not."""
    if change.before is None or meta.name(change.obj) not in (ACCOUNT, ROOT):
        return ()
    return (Ref("v1", "Namespace", "", meta.namespace(change.obj)),)
