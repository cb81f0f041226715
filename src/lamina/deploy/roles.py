"""The rights of an installation: what `lamina run` needs cluster-wide, and in its own namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lamina.admission.ca import Secrets
from lamina.core.model.family import Family
from lamina.core.rbac import Rights

_CRDS = ("apiextensions.k8s.io", ("customresourcedefinitions",))
_LEASES = ("coordination.k8s.io", ("leases",))
_WEBHOOKS = ("admissionregistration.k8s.io", ("validatingwebhookconfigurations",))


def base_rights() -> Rights:
    """Return the rights that `lamina run` needs cluster-wide, whatever the families."""
    needed = Rights()
    needed.add(*_CRDS, ("get", "list", "watch"))
    return needed


def install_rights() -> Rights:
    """Return the rights to install the CustomResourceDefinitions, in addition."""
    needed = Rights()
    needed.add(*_CRDS, ("create", "patch"))
    return needed


def webhook_rights(families: Sequence[Family]) -> Rights:
    """Return the rights to register the webhook and to create SubjectAccessReviews."""
    needed = Rights()
    if names := configuration_names(families):
        needed.add(*_WEBHOOKS, ("create",))
        needed.add(*_WEBHOOKS, ("get", "patch"), names=names)
        needed.add("authorization.k8s.io", ("subjectaccessreviews",), ("create",))
    return needed


def lease_rights(names: Sequence[str]) -> Rights:
    """Return the rights on the Leases of these names, in their namespace."""
    needed = Rights()
    # A request to create has no name that a rule could be restricted to.
    needed.add(*_LEASES, ("create",))
    needed.add(*_LEASES, ("get", "update"), names=names)
    return needed


def upstream_rights(family: Family) -> Rights:
    """
    Return the rights on the Leases of the originals of a family, by their names in every namespace.

    Their namespaces may be created later, and a Role can only be in one that exists. A
    request to create has no name that a rule could be restricted to.
    """
    needed = Rights()
    if leases := family.upstream_leases:
        needed.add("", ("namespaces",), ("get",), names=sorted({one.namespace for one in leases}))
        needed.add(*_LEASES, ("create",))
        needed.add(*_LEASES, ("get", "update"), names=sorted({one.name for one in leases}))
    return needed


def secret_rights() -> Rights:
    """Return the rights on the Secret of the webhook's certificate authority, in its namespace."""
    needed = Rights()
    needed.add("", ("secrets",), ("create",))
    needed.add("", ("secrets",), ("get",), names=(Secrets(namespace="").name,))
    return needed


def configuration_names(families: Sequence[Family]) -> tuple[str, ...]:
    """Return the names of the webhook configurations of families."""
    return tuple(dict.fromkeys(check.configuration for family in families for check in family.checks))


def uninstall_rights(families: Sequence[Family]) -> Rights:
    """Return the rights of `lamina uninstall`, on the kinds of families."""
    needed = Rights()
    needed.add(*_CRDS, ("get", "list"))
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            needed.add(spec["group"], (spec["names"]["plural"],), ("get", "list", "patch"))
    needed.add(*_LEASES, ("get", "list", "delete"))
    needed.add("", ("secrets",), ("get", "delete"), names=(Secrets(namespace="").name,))
    if names := configuration_names(families):
        needed.add(*_WEBHOOKS, ("get", "delete"), names=names)
    return needed


def view_rights(family: Family) -> Rights:
    """Return the rights that a family adds to the role `view`, and so to `edit` and `admin`."""
    needed = Rights()
    for group, plural, _ in _namespaced(family):
        needed.add(group, (plural,), ("get", "list", "watch"))
    return needed


def edit_rights(family: Family) -> Rights:
    """Return the rights that a family adds to the roles `edit` and `admin`."""
    needed = Rights()
    for group, plural, name in _namespaced(family):
        if name in family.user_definitions:
            needed.add(group, (plural,), ("create", "update", "patch", "delete"))
    return needed


def _namespaced(family: Family) -> Iterator[tuple[str, str, str]]:
    """Yield group, resource and definition of each namespaced kind."""
    for definition in family.definitions():
        spec = definition["spec"]
        if spec["scope"] == "Namespaced":
            yield spec["group"], spec["names"]["plural"], definition["metadata"]["name"]
