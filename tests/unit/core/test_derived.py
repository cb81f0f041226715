"""What a watch derives from an object: once per version, and never from another."""

from typing import Any

from lamina.core.model.controller import Watch, no_keys, only
from lamina.core.model.world import CachedObject, derived, everything
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.watch_spec import watch_spec, watch_specs
from lamina.simulation.cluster.kinds import CONFIG_MAP, make
from lamina.simulation.process.informers import Informers

SETTINGS = make(CONFIG_MAP, "settings", data={"colour": "red"})


def colour(obj: Obj) -> str:
    return str((obj.get("data") or {}).get("colour"))


def name_only(obj: Obj) -> Obj:
    return {**obj, "data": {}}


WATCH = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=name_only, derive=colour)


def test_it_is_derived_from_all_of_an_object_and_not_from_what_is_kept() -> None:
    kept = WATCH.cached(SETTINGS)

    assert kept["data"] == {}
    assert derived(colour, kept) == "red"


def test_it_is_computed_once_for_each_version() -> None:
    seen: list[str] = []

    def counted(obj: Obj) -> str:
        seen.append(colour(obj))
        return seen[-1]

    kept = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, derive=counted).cached(SETTINGS)

    assert [derived(counted, kept) for _ in range(3)] == ["red"] * 3
    assert seen == ["red"]


def test_it_is_computed_for_an_object_that_no_cache_holds() -> None:
    assert derived(colour, SETTINGS) == "red"


def test_it_is_computed_anew_where_a_cache_derives_something_else() -> None:
    def size(obj: Obj) -> int:
        return len(obj["data"])

    kept = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=everything, derive=size).cached(
        SETTINGS
    )

    assert derived(size, kept) == 1
    assert derived(colour, kept) == "red"


def test_a_changed_copy_does_not_carry_what_was_derived_before() -> None:
    kept = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, derive=colour).cached(SETTINGS)
    changed = {**kept, "data": {"colour": "blue"}}

    assert isinstance(kept, CachedObject)
    assert not isinstance(changed, CachedObject)
    assert derived(colour, changed) == "blue"


def test_what_is_kept_equals_the_plain_object() -> None:
    kept = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=everything, derive=colour).cached(
        SETTINGS
    )

    assert kept == SETTINGS


def test_watches_that_keep_and_derive_the_same_share_a_cache() -> None:
    other = Watch(
        selects=only("", "ConfigMap"), enqueue=no_keys, keep=name_only, derive=colour, delay=WATCH.delay
    )
    plain = Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=name_only)

    assert watch_spec(CONFIG_MAP, other) == watch_spec(CONFIG_MAP, WATCH)
    assert hash(watch_spec(CONFIG_MAP, other)) == hash(watch_spec(CONFIG_MAP, WATCH))
    assert watch_spec(CONFIG_MAP, plain) != watch_spec(CONFIG_MAP, WATCH)


def test_a_watch_that_derives_nothing_keeps_what_it_says() -> None:
    assert Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=name_only).cached is name_only


def test_a_simulated_informer_derives_from_each_version_it_sees() -> None:
    objects: list[dict[str, Any]] = [
        {**SETTINGS, "metadata": {**SETTINGS["metadata"], "resourceVersion": "1"}}
    ]
    informers = Informers(lambda kind: objects, DeletedUids())
    (spec,) = watch_specs(Kinds([CONFIG_MAP]), WATCH)
    informer = informers.follow(spec)
    seen = []
    informer.handlers.append(lambda change: seen.append(derived(colour, change.after or {})))

    later = {
        **objects[0],
        "data": {"colour": "blue"},
        "metadata": {**objects[0]["metadata"], "resourceVersion": "2"},
    }
    informer.put(CONFIG_MAP.ref("default", "settings"), later, 2)

    assert seen == ["blue"]
    assert [derived(colour, obj) for obj in informer.indexer.every()] == ["blue"]
