"""The `default` service account and the `kube-root-ca.crt` ConfigMap of every namespace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Action, Create, Patch, Plan, change, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, identity_only
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
    """A namespace that is not being deleted, and what it has of the two."""

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
def accounts(ca_bundle: str) -> Controller[View]:
    """Return the controller that creates both in every namespace, with this CA certificate in PEM."""

    def plan(view: View, answers: Answers, now: datetime) -> Plan:
        actions: list[Action] = []
        if not view.has_account:
            actions.append(Create(obj=_account(view.namespace)))
        if view.root is None:
            actions.append(Create(obj=_root(view.namespace, ca_bundle)))
        elif correction := _correction(view.root, ca_bundle):
            actions.append(correction)
        return one_stage(
            "create or update", actions, because="every namespace has a service account and the root CA"
        )

    return Controller(
        name="accounts",
        watches=(
            Watch(selects=only("", "Namespace"), enqueue=itself, keep=identity_only, metadata_only=True),
            Watch(
                selects=only("", "ServiceAccount"),
                enqueue=_enqueue_namespace,
                keep=identity_only,
                metadata_only=True,
            ),
            Watch(selects=only("", "ConfigMap"), enqueue=_enqueue_namespace, keep=_content, named=ROOT),
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


def _root(namespace: str, ca_bundle: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT, "namespace": namespace, "annotations": {_DESCRIPTION: _DESCRIBED}},
        "data": {"ca.crt": ca_bundle},
    }


def _correction(root: Obj, ca_bundle: str) -> Patch | None:
    """Return the patch that restores a changed root CA."""
    data = root.get("data") or {}
    patch: Made = {}
    if data != {"ca.crt": ca_bundle}:
        patch["data"] = {**dict.fromkeys(data), "ca.crt": ca_bundle}
    if not meta.annotations(root).get(_DESCRIPTION):
        patch["metadata"] = {"annotations": {_DESCRIPTION: _DESCRIBED}}
    return change(root, patch) if patch else None


def _content(obj: Obj) -> Obj:
    """Keep its identity, its description and its data."""
    kept = identity_only(obj)
    annotations = {key: value for key, value in meta.annotations(obj).items() if key == _DESCRIPTION}
    return {**kept, "metadata": {**kept["metadata"], "annotations": annotations}, "data": obj.get("data")}


def _enqueue_namespace(world: World, change: Change) -> Iterable[Ref]:
    """A changed or deleted service account or root CA enqueues its namespace; a new one does not."""
    if change.before is None or meta.name(change.obj) not in (ACCOUNT, ROOT):
        return ()
    return (Ref("v1", "Namespace", "", meta.namespace(change.obj)),)
