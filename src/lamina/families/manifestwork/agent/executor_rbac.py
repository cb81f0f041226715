"""
Access reviews for works with an executor: an object that its service account may not write is not applied.

The agent has nearly all rights, and a work with an executor has those of that account
only. For each object a SubjectAccessReview says whether the account may create, update,
patch, get and, unless the object is orphaned, delete it. Roles and bindings are created
as a dry run in the name of the account, since a server refuses to grant rights that the
account does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lamina.core.model.queries import Answers, DryRun, Found, Query, Refused, Review
from lamina.families.manifestwork.agent.api import Executor, ServiceAccount
from lamina.families.manifestwork.agent.labels import AGENT
from lamina.families.manifestwork.agent.manifest import Manifest
from lamina.objects.digest import digest
from lamina.objects.types import Made

_VERBS = ("create", "update", "patch", "get")
_RBAC = "rbac.authorization.k8s.io"
_GIVES_RIGHTS = frozenset(("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
_FORBIDDEN = 403


class Access(Struct, frozen=True):
    """Whether an object may be applied, the queries that it depends on, or why not."""

    queries: tuple[Query, ...] = ()
    denied: str = ""
    wrong: str = ""
    """Why that is unknown."""


ALLOWED = Access()


def access(executor: Executor | None, manifest: Manifest, answers: Answers) -> Access:
    """Return whether an executor may apply an object."""
    if executor is None:
        return ALLOWED
    account = executor.subject.service_account
    if executor.subject.type != "ServiceAccount":
        return Access(wrong="only support ServiceAccount type for the executor")
    if account is None:
        return Access(wrong="the executor service account is nil")
    reviews = tuple(_reviews(account, manifest))
    if queries := tuple(one for one in reviews if one not in answers):
        return Access(queries)
    for review in reviews:
        match answers.get(review):
            case Found(obj=obj) if (obj.get("status") or {}).get("allowed") is True:
                continue
            case Found():
                return Access(denied=_denied(manifest))
            case Refused(because=because):
                return Access(wrong=because)
            case _:
                return Access(wrong="the server has no access review")
    return _without_escalation(account, manifest, answers)


def _without_escalation(account: ServiceAccount, manifest: Manifest, answers: Answers) -> Access:
    if manifest.group != _RBAC or manifest.resource.resource not in _GIVES_RIGHTS:
        return ALLOWED
    made = DryRun(
        obj=manifest.obj,
        manager=AGENT,
        key=digest(["escalation", manifest.obj]),
        creates=True,
        user=_user(account),
    )
    match answers.get(made):
        case None:
            return Access((made,))
        case Refused(code=code) if code == _FORBIDDEN:
            return Access(denied=_denied(manifest, ", error: permission escalation"))
        case Found() | Refused(code=409):
            # The server checks the rights before it reports that the object exists.
            return ALLOWED
        case Refused(because=because):
            return Access(wrong=because)
        case _:
            # The rights that a binding grants are unknown before its role exists.
            return Access(wrong=f"what {manifest} refers to, or its namespace, does not exist")


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
