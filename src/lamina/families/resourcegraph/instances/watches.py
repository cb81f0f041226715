"""The watches of the controller of one definition's instances."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.model.controller import Watch, no_keys, only
from lamina.core.model.world import everything, identity_only
from lamina.families.resourcegraph.api import parse_definition
from lamina.families.resourcegraph.definitions.crd_cache import reduced, schema_mark, whole_or_child
from lamina.families.resourcegraph.definitions.view import parse_revision
from lamina.families.resourcegraph.instances import enqueue
from lamina.families.resourcegraph.instances.view import Setup
from lamina.families.resourcegraph.labels import (
    API_VERSION,
    DEFINITION,
    DEFINITION_REVISION,
    INPUT_REVISION,
    OWNED,
)
from lamina.objects import meta
from lamina.objects.types import Obj


def watches(setup: Setup) -> tuple[Watch, ...]:
    """Return the watches on instances, on what they are made from, and on their children."""
    own = _own(setup)
    return (*own, *_children(setup, own))


def _own(setup: Setup) -> tuple[Watch, ...]:
    return (
        Watch(
            selects=only(*setup.kind),
            api_version=setup.api_version,
            enqueue=enqueue.instance_changed,
            keep=everything,
        ),
        Watch(
            selects=only(*INPUT_REVISION),
            api_version=API_VERSION,
            enqueue=partial(enqueue.input_changed, setup),
        ),
        Watch(
            selects=only(*DEFINITION),
            api_version=API_VERSION,
            enqueue=partial(enqueue.definition_changed, setup),
            keep=whole_or_child,
            derive=parse_definition,
        ),
        Watch(
            selects=only(*DEFINITION_REVISION),
            api_version=API_VERSION,
            enqueue=partial(enqueue.revision_changed, setup),
            derive=parse_revision,
        ),
        Watch(
            selects=only(*CRD),
            enqueue=partial(enqueue.schema_changed, setup),
            keep=reduced,
            derive=schema_mark,
        ),
    )


def _children(setup: Setup, own: tuple[Watch, ...]) -> Iterator[Watch]:
    """
    Yield the watches on children; one of a kind that is watched anyway shares that cache.

    With two caches of a kind, an instance could be enqueued by one before the other has the change.
    """
    by_selects = {watch.selects: watch for watch in own}
    for api_version, kind in setup.children:
        selects = only(api_version.rpartition("/")[0], kind)
        same = by_selects.get(selects)
        yield Watch(
            selects=selects,
            api_version=api_version,
            enqueue=partial(enqueue.child_changed, setup),
            keep=child if same is None else same.keep,
            derive=None if same is None else same.derive,
        )


def deletion_watches(setup: Setup) -> tuple[Watch, ...]:
    """
    Return the watches on instances whose definition is gone, and on CRDs.

    They are deleted by live lists alone, of the kinds that have not gone with their CRDs.
    """
    return (
        Watch(
            selects=only(*setup.kind),
            api_version=setup.api_version,
            enqueue=enqueue.deletion_changed,
            keep=everything,
        ),
        Watch(selects=only(*CRD), enqueue=no_keys, keep=reduced, derive=schema_mark),
    )


def child(obj: Obj) -> Obj:
    """Keep all of a child, with its managed fields; of any other object of its kind the identity and the labels."""
    if OWNED in meta.labels(obj):
        return obj
    return meta.with_metadata(identity_only(obj), labels=dict(meta.labels(obj)))
