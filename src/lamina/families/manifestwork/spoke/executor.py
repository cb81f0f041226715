"""
In whose name a work is applied: what that one may not do, is not done.

The agent may do nearly everything, and a work that names an account may do no more
than that account. It is asked of the server: for each object whether the account may
make, change, read and, unless the object is to stay, delete it; and for roles and
bindings what would happen if the account made them, since a server refuses to let
anybody give away rights they do not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lamina.core.questions import Answers, Found, Question, Refused, Rehearse, Review
from lamina.families.manifestwork.spoke.api import Executor, ServiceAccount
from lamina.families.manifestwork.spoke.manifest import Manifest
from lamina.families.manifestwork.spoke.names import AGENT
from lamina.objects.digest import digest
from lamina.objects.types import Made

_VERBS = ("create", "update", "patch", "get")
_RBAC = "rbac.authorization.k8s.io"
_GIVES_RIGHTS = frozenset(("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
_FORBIDDEN = 403


class Verdict(Struct, frozen=True):
    """Whether an object may be applied: what has still to be asked, or why not."""

    asks: tuple[Question, ...] = ()
    denied: str = ""
    wrong: str = ""
    """Why nobody can tell."""


ALLOWED = Verdict()


def verdict(executor: Executor | None, manifest: Manifest, answers: Answers) -> Verdict:
    """Return whether an object may be applied in the name of an account."""
    if executor is None:
        return ALLOWED
    account = executor.subject.service_account
    if executor.subject.type != "ServiceAccount":
        return Verdict(wrong="only support ServiceAccount type for the executor")
    if account is None:
        return Verdict(wrong="the executor service account is nil")
    reviews = tuple(_reviews(account, manifest))
    if asks := tuple(one for one in reviews if one not in answers):
        return Verdict(asks)
    for review in reviews:
        match answers.get(review):
            case Found(obj=obj) if (obj.get("status") or {}).get("allowed") is True:
                continue
            case Found():
                return Verdict(denied=_denied(manifest))
            case Refused(because=because):
                return Verdict(wrong=because)
            case _:
                return Verdict(wrong="the server does not say who may do what")
    return _without_escalation(account, manifest, answers)


def _without_escalation(account: ServiceAccount, manifest: Manifest, answers: Answers) -> Verdict:
    if manifest.group != _RBAC or manifest.resource.resource not in _GIVES_RIGHTS:
        return ALLOWED
    made = Rehearse(
        obj=manifest.obj,
        manager=AGENT,
        key=digest(["escalation", manifest.obj]),
        creates=True,
        user=_user(account),
    )
    match answers.get(made):
        case None:
            return Verdict((made,))
        case Refused(code=code) if code == _FORBIDDEN:
            return Verdict(denied=_denied(manifest, ", error: permission escalation"))
        case Found() | Refused(code=409):
            # One that is there already is judged before that is noticed.
            return ALLOWED
        case Refused(because=because):
            return Verdict(wrong=because)
        case _:
            # A binding to a role that is not there: what it gives away nobody can tell before it is.
            return Verdict(wrong=f"what {manifest} refers to, or its namespace, is not there")


def _denied(manifest: Manifest, why: str = "") -> str:
    one = manifest.resource
    named = f"{one.group} {one.resource}, {one.namespace} {one.name}"
    return f"not allowed to apply the resource {named}{why}, will try again in 1m0s"


def _user(account: ServiceAccount) -> str:
    return f"system:serviceaccount:{account.namespace}:{account.name}"


def _reviews(account: ServiceAccount, manifest: Manifest) -> Iterator[Review]:
    one = manifest.resource
    for verb in (*_VERBS, *(() if manifest.is_orphaned else ("delete",))):
        spec: Made = {
            "user": _user(account),
            "groups": [
                "system:serviceaccounts",
                "system:authenticated",
                f"system:serviceaccounts:{account.namespace}",
            ],
            "resourceAttributes": {
                "group": one.group,
                "version": manifest.version,
                "resource": one.resource,
                "namespace": one.namespace,
                "name": one.name,
                "verb": verb,
            },
        }
        body: Made = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": spec,
        }
        yield Review(body=body, key=digest(spec))
