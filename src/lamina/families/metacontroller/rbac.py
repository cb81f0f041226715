"""
The least RBAC rules that some controllers need, for a ClusterRole.

They follow from the specs. What a customize hook selects is not in a spec: a note
names the hook instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from lamina.core.rbac import Rights
from lamina.errors import SpecError
from lamina.families.metacontroller import api
from lamina.families.metacontroller.compile import Hooks
from lamina.families.metacontroller.hooks.endpoint import endpoint
from lamina.families.metacontroller.labels import COMPOSITE, DECORATOR, GROUP, RELEASE, finalizer
from lamina.objects.types import Obj

_Parent: TypeAlias = api.ParentResource | api.DecoratedResource
_READ = ("get", "list", "watch")
_MANAGE = (*_READ, "create", "patch", "delete")


def rights(controllers: Iterable[Obj]) -> Rights:
    """Return the rules that these CompositeControllers and DecoratorControllers need."""
    needed = Rights()
    own = ("compositecontrollers", "decoratorcontrollers")
    needed.add(GROUP, own, _READ)
    needed.add(GROUP, [f"{one}/status" for one in own], ("patch",))
    needed.add(GROUP, own, ("patch",))
    needed.add("", ("events",), ("create", "get", "patch"))
    for obj in controllers:
        try:
            if obj.get("kind") == COMPOSITE.kind:
                _composite(needed, api.composite(obj))
            elif obj.get("kind") == DECORATOR.kind:
                _decorator(needed, api.decorator(obj))
        except SpecError:
            # It does not run, and so needs nothing.
            continue
    return needed


def is_finalizer(text: str) -> bool:
    """Say whether a finalizer is one that the controllers set, on parents or on controllers."""
    return text == RELEASE or text.startswith(tuple(finalizer(kind, "") for kind in (COMPOSITE, DECORATOR)))


def edits(controllers: Iterable[Obj]) -> Rights:
    """Return the rights to edit the parents of these controllers."""
    needed = Rights()
    for obj in controllers:
        try:
            if obj.get("kind") == COMPOSITE.kind:
                targets: Sequence[_Parent] = (api.composite(obj).parent_resource,)
            elif obj.get("kind") == DECORATOR.kind:
                targets = api.decorator(obj).resources
            else:
                continue
        except SpecError:
            continue
        for target in targets:
            needed.add(_group(target.api_version), (target.resource,), ("update", "patch"))
    return needed


def _composite(needed: Rights, spec: api.CompositeSpec) -> None:
    parent = spec.parent_resource
    _parent(needed, parent)
    for child in spec.child_resources:
        needed.add(_group(child.api_version), (child.resource,), _MANAGE)
    methods = [child.update_strategy.method for child in spec.child_resources if child.update_strategy]
    if any(method.startswith("Rolling") for method in methods):
        needed.add(GROUP, ("controllerrevisions",), _MANAGE)
    _hooks(needed, spec.hooks, spec.endpoint_configs)


def _decorator(needed: Rights, spec: api.DecoratorSpec) -> None:
    for target in spec.resources:
        _parent(needed, target)
    for attachment in spec.attachments:
        needed.add(_group(attachment.api_version), (attachment.resource,), _MANAGE)
    _hooks(needed, spec.hooks, spec.endpoint_configs)


def _parent(needed: Rights, parent: _Parent) -> None:
    group = _group(parent.api_version)
    # Our finalizer may have to be removed where there is no finalize hook any more.
    needed.add(group, (parent.resource,), (*_READ, "patch"))
    needed.add(group, (f"{parent.resource}/status",), ("patch",))
    # Owner references of children set blockOwnerDeletion, which requires this right.
    needed.add(group, (f"{parent.resource}/finalizers",), ("update",))


def _hooks(needed: Rights, hooks: Hooks | None, configs: Sequence[api.EndpointConfig]) -> None:
    if hooks is None:
        return
    for purpose, hook in (("sync", hooks.sync), ("finalize", hooks.finalize), ("customize", hooks.customize)):
        found = endpoint(purpose, hook, configs)
        if found is None:
            continue
        if purpose == "customize":
            # A related rule may select namespaces by labels.
            needed.add("", ("namespaces",), _READ)
            needed.note(f"the objects that customize hook {found.url} selects")
        for ref in found.needs:
            needed.add("", (f"{ref.kind.lower()}s",), _READ, names=(ref.name,))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
