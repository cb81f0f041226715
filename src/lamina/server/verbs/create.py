"""Store a new object."""

from __future__ import annotations

import orjson

from lamina.errors import AlreadyExists
from lamina.objects.types import Made
from lamina.server import words
from lamina.server.admission import admit_create, admit_namespace, place, read_body
from lamina.server.encoding import encode_stored
from lamina.server.metadata import generated_name
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.rendering import object_answer, remember, shown
from lamina.server.request import Answer, Identity, Request
from lamina.server.specials import await_account, before_create
from lamina.server.store import Expect, Row

_ATTEMPTS = 8
"""How many generated names are tried before the clash is somebody else's problem."""


async def create(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer 201 with the object as it was stored."""
    options = write_options(request, "CreateOptions")
    obj = read_body(request, target, options)
    place(target, obj)
    admit_namespace(plane, target, obj["metadata"].get("name", ""))
    metadata = obj["metadata"]
    prefix = "" if metadata.get("name") else metadata.get("generateName", "")
    if not prefix:
        return await store_new(plane, request, target._replace(name=metadata.get("name", "")), obj, options)
    kept = orjson.dumps(obj)
    for attempt in range(_ATTEMPTS):
        name = metadata["name"] = generated_name(prefix, plane.choose)
        try:
            return await store_new(plane, request, target._replace(name=name), obj, options)
        except AlreadyExists:
            if attempt == _ATTEMPTS - 1:
                raise
            obj = orjson.loads(kept)
            metadata = obj["metadata"]
    raise AssertionError("the last attempt answers or raises")


async def store_new(
    plane: Plane, request: Request, target: Target, obj: Made, options: WriteOptions
) -> Answer:
    """Admit and store a decoded object under its name, and answer 201 with it."""
    await await_account(plane, target, obj)
    obj = await admit_create(plane, request, target, obj, options)
    row = await put_new(plane, target, obj, request.user, dry_run=options.dry_run)
    return object_answer(request, target.kind, shown(target.kind, row), plane.now(), status=201)


async def put_new(plane: Plane, target: Target, obj: Made, user: Identity, *, dry_run: bool) -> Row:
    """Store an admitted object that is not there yet, and return its row; a dry run only looks whether it could."""
    kind = target.kind
    # Once more: webhooks take their time, and a namespace may have ended meanwhile.
    admit_namespace(plane, target, target.name)
    before_create(plane, target, obj, user)
    stored = kind.shape.store(obj) if kind.converts or kind.custom else obj
    if dry_run:
        if plane.store.newest(target.key) is not None:
            raise _taken(plane, target, generated=bool(obj["metadata"].get("generateName")))
        return Row(target.key, 0, encode_stored(stored))
    try:
        row = await plane.store.append(target.key, stored, expect=Expect.ABSENT)
    except AlreadyExists:
        raise _taken(plane, target, generated=bool(obj["metadata"].get("generateName"))) from None
    remember(kind, row)
    return row


def _taken(plane: Plane, target: Target, *, generated: bool) -> AlreadyExists:
    row = plane.store.newest(target.key)
    ending = row is not None and "deletionTimestamp" in orjson.loads(row.value)["metadata"]
    return words.already_exists(target.kind, target.name, ending=ending, generated=generated)
