"""
How a write is put before the policies that are in force and the webhooks that are registered.

Policies are asked on the spot. Webhooks take their time, and whoever writes to
the object meanwhile is quicker: then the write is worked out anew.
"""

from __future__ import annotations

import orjson

from lamina.objects.types import Made, Obj
from lamina.server.builtin.definitions import definition
from lamina.server.custom.scale import paths_of, scale_of
from lamina.server.kind import Kind
from lamina.server.options import WriteOptions
from lamina.server.plane import Plane, Target
from lamina.server.policies.attempt import Attempt
from lamina.server.request import ITSELF, Request


async def review(
    plane: Plane, request: Request, target: Target, new: Obj, old: Obj | None, options: WriteOptions
) -> None:
    """Ask about a creation or a change; raises what the first one that minds says."""
    said = _options(request, "CreateOptions" if old is None else "UpdateOptions", dry_run=options.dry_run)
    body = None
    version = "" if old is None else old["metadata"]["resourceVersion"]
    if target.below is not None and target.subresource == "scale":
        body = (target.below.group, target.below.version, target.below.kind)
        paths = paths_of(target.kind)
        new, old = scale_of(new, paths), None if old is None else scale_of(old, paths)
    await _ask(plane, request, target, _attempt(request, target, new, old, said, body), version)


async def review_end(plane: Plane, request: Request, target: Target, old: Obj, *, dry_run: bool) -> None:
    """Ask about a deletion."""
    said = _options(request, "DeleteOptions", dry_run=dry_run)
    attempt = _attempt(request, target, None, old, said)
    await _ask(plane, request, target, attempt, old["metadata"]["resourceVersion"])


async def review_action(
    plane: Plane, request: Request, target: Target, asked: Obj, options: WriteOptions
) -> None:
    """Ask about what somebody does to an object by writing something below it: an eviction, a binding."""
    below = target.below
    assert below is not None
    metadata = {**(asked.get("metadata") or {}), "namespace": target.namespace}
    version = f"{below.group}/{below.version}" if below.group else below.version
    new = {**asked, "apiVersion": version, "kind": below.kind, "metadata": metadata}
    said = _options(request, "CreateOptions", dry_run=options.dry_run)
    body = (below.group, below.version, below.kind)
    await _ask(plane, request, target, _attempt(request, target, new, None, said, body), "")


def _options(request: Request, kind: str, *, dry_run: bool) -> Made:
    """Return the options of a request as they were given."""
    said: Made = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if dry_run:
        said["dryRun"] = ["All"]
    for name in ("fieldManager", "fieldValidation"):
        if kind != "DeleteOptions" and (given := request.parameter(name)):
            said[name] = given
    return said


def _attempt(
    request: Request,
    target: Target,
    new: Obj | None,
    old: Obj | None,
    options: Made,
    body: tuple[str, str, str] | None = None,
) -> Attempt:
    kind = target.kind
    return Attempt(
        operation="DELETE" if new is None else "CREATE" if old is None else "UPDATE",
        kind=kind,
        # A namespace is taken to be in itself.
        namespace=target.name if kind.bucket == "namespaces" else target.namespace,
        name=target.name,
        subresource=target.subresource,
        new=new,
        old=old,
        user=request.user,
        dry_run="dryRun" in options,
        options=options,
        convert=lambda obj, other: other.shape.read(kind.shape.store(orjson.loads(orjson.dumps(obj)))),
        body=body,
    )


class Moved(Exception):
    """The object became another while webhooks were asked about a change to it."""


async def _ask(plane: Plane, request: Request, target: Target, attempt: Attempt, version: str) -> None:
    if request.user is ITSELF:
        # A policy, or a webhook that nobody serves any more, must not keep a server from starting.
        return
    for sentence in plane.policies.review(attempt):
        request.warn(sentence)
    asked = plane.webhooks.asked(attempt)
    if not asked:
        return
    for sentence in await plane.asker.ask(attempt, asked, [plane.new_uid() for _ in asked]):
        request.warn(sentence)
    if version and target.name:
        row = plane.store.newest(target.key)
        if row is None or str(row.version) != version:
            raise Moved


def say_types(plane: Plane, policy: Made) -> None:
    """Write into a policy's status what checking its expressions against the kinds it names has found."""
    # Loaded with the first policy: expressions take longer to load than the rest of the server to start.
    from lamina.server.policies.typed import type_check

    registry = plane.registry

    def named(version: str, name: str) -> Kind | None:
        return next((one for one in registry.kinds() if (one.api_version, one.kind) == (version, name)), None)

    policy["status"] = {
        **(policy.get("status") or {}),
        "observedGeneration": policy["metadata"].get("generation", 1),
        "typeChecking": type_check(policy.get("spec") or {}, registry.find, named, definition),
    }
