"""The create verb."""

from __future__ import annotations

import orjson

from lamina.errors import AlreadyExists
from lamina.objects.types import Made
from lamina.server import status_errors
from lamina.server.admission.kind_hooks import before_create, wait_for_service_account
from lamina.server.admission.options import WriteOptions, write_options
from lamina.server.admission.pipeline import admit_create, check_namespace, read_body, set_namespace
from lamina.server.codec.response import mark_current, object_response, versioned_json
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.identity import Identity
from lamina.server.kinds.metadata import generated_name
from lamina.server.kinds.target import Target
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.store import Expect, Row

_ATTEMPTS = 8
"""How many generated names are tried before AlreadyExists is returned."""


async def create(context: ServerContext, request: Request, target: Target) -> Response:
    """Return 201 with the stored object."""
    options = write_options(request, "CreateOptions")
    obj = read_body(request, target, options)
    set_namespace(target, obj)
    check_namespace(context, target, obj["metadata"].get("name", ""))
    metadata = obj["metadata"]
    prefix = "" if metadata.get("name") else metadata.get("generateName", "")
    if not prefix:
        return await store_new(context, request, target._replace(name=metadata.get("name", "")), obj, options)
    original = orjson.dumps(obj)
    for attempt in range(_ATTEMPTS):
        name = metadata["name"] = generated_name(prefix, context.choose)
        try:
            return await store_new(context, request, target._replace(name=name), obj, options)
        except AlreadyExists:
            if attempt == _ATTEMPTS - 1:
                raise
            obj = orjson.loads(original)
            metadata = obj["metadata"]
    raise AssertionError("the last attempt answers or raises")


async def store_new(
    context: ServerContext, request: Request, target: Target, obj: Made, options: WriteOptions
) -> Response:
    """Admit and store a decoded object that has a name, and return 201 with it."""
    await wait_for_service_account(context, target, obj)
    obj = await admit_create(context, request, target, obj, options)
    row = await store_row(context, target, obj, request.user, dry_run=options.dry_run)
    return object_response(request, target.kind, versioned_json(target.kind, row), context.now(), status=201)


async def store_row(
    context: ServerContext, target: Target, obj: Made, user: Identity, *, dry_run: bool
) -> Row:
    """Store an admitted new object and return its row; a dry run only checks whether it could be stored."""
    kind = target.kind
    # Checked again: the namespace may have been deleted while webhooks were called.
    check_namespace(context, target, target.name)
    before_create(context, target, obj, user)
    stored = kind.shape.store(obj) if kind.converts or kind.custom else obj
    if dry_run:
        if context.store.newest(target.key) is not None:
            raise _already_exists(context, target, generated=bool(obj["metadata"].get("generateName")))
        return Row(target.key, 0, encode_stored(stored))
    try:
        row = await context.store.append(target.key, stored, expect=Expect.ABSENT)
    except AlreadyExists:
        raise _already_exists(context, target, generated=bool(obj["metadata"].get("generateName"))) from None
    mark_current(kind, row)
    return row


def _already_exists(context: ServerContext, target: Target, *, generated: bool) -> AlreadyExists:
    row = context.store.newest(target.key)
    terminating = row is not None and "deletionTimestamp" in orjson.loads(row.value)["metadata"]
    return status_errors.already_exists(
        target.kind, target.name, terminating=terminating, generated=generated
    )
