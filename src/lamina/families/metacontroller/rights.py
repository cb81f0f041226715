"""
What running some controllers takes: the least rights, as rules of a ClusterRole.

Known from what they say alone. What customize hooks will ask to see is not
known before they do, and is said beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamina.core.rights import Rights
from lamina.errors import SpecError
from lamina.families.metacontroller import api
from lamina.families.metacontroller.names import COMPOSITE, DECORATOR, GROUP
from lamina.families.metacontroller.webhooks import endpoint
from lamina.objects.types import Obj

_SEE = ("get", "list", "watch")
_KEEP = (*_SEE, "create", "patch", "delete")


def rights(controllers: Iterable[Obj]) -> Rights:
    """Return what running these CompositeControllers and DecoratorControllers takes."""
    needed = Rights()
    own = ("compositecontrollers", "decoratorcontrollers")
    needed.add(GROUP, own, _SEE)
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


def _composite(needed: Rights, spec: api.CompositeSpec) -> None:
    parent = spec.parent_resource
    group = _group(parent.api_version)
    # A finalizer of ours may have to come off even where there is no finalize hook any more.
    needed.add(group, (parent.resource,), (*_SEE, "patch"))
    needed.add(group, (f"{parent.resource}/status",), ("patch",))
    # Children name their parent as one whose deletion they hold up.
    needed.add(group, (f"{parent.resource}/finalizers",), ("update",))
    for child in spec.child_resources:
        needed.add(_group(child.api_version), (child.resource,), _KEEP)
    methods = [child.update_strategy.method for child in spec.child_resources if child.update_strategy]
    if any(method.startswith("Rolling") for method in methods):
        needed.add(GROUP, ("controllerrevisions",), _KEEP)
    _hooks(needed, spec.hooks, spec.endpoint_configs)


def _decorator(needed: Rights, spec: api.DecoratorSpec) -> None:
    for target in spec.resources:
        group = _group(target.api_version)
        needed.add(group, (target.resource,), (*_SEE, "patch"))
        needed.add(group, (f"{target.resource}/status",), ("patch",))
        needed.add(group, (f"{target.resource}/finalizers",), ("update",))
    for attachment in spec.attachments:
        needed.add(_group(attachment.api_version), (attachment.resource,), _KEEP)
    _hooks(needed, spec.hooks, spec.endpoint_configs)


def _hooks(
    needed: Rights,
    hooks: api.CompositeHooks | api.DecoratorHooks | None,
    configs: Sequence[api.EndpointConfig],
) -> None:
    if hooks is None:
        return
    for purpose, hook in (("sync", hooks.sync), ("finalize", hooks.finalize), ("customize", hooks.customize)):
        found = endpoint(purpose, hook, configs)
        if found is None:
            continue
        if purpose == "customize":
            # One may select namespaces by their labels.
            needed.add("", ("namespaces",), _SEE)
            needed.note(f"what customize hook {found.url} asks to see")
        for ref in found.needs:
            needed.add("", (f"{ref.kind.lower()}s",), _SEE, names=(ref.name,))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
