"""Whether children, and the records that claim them, still are as they were seen: a few are read, many are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from lamina.core.questions import Answer, Answers, Found, Listed, Read, ReadAll
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj

Name = TypeVar("Name")

_FEW = 16


def looks(seen: Mapping[Name, tuple[Kind, Obj]]) -> Mapping[Name, Read | ReadAll]:
    """Return what has to be asked to be sure of each of some objects."""
    places = {name: (kind, meta.namespace(obj)) for name, (kind, obj) in seen.items()}
    counts = Counter(places.values())
    return {
        name: ReadAll(*place) if counts[place] > _FEW else Read(meta.ref(seen[name][1]))
        for name, place in places.items()
    }


def outdated(
    seen: Mapping[Name, tuple[Kind, Obj]], asked: Mapping[Name, Read | ReadAll], answers: Answers
) -> set[Name]:
    """Return those that are not as they were seen any more, as far as has been answered."""
    real = {look: _versions(answer) for look in set(asked.values()) if (answer := answers.get(look))}
    return {
        name
        for name, (_, obj) in seen.items()
        if asked[name] in real and _version(obj) not in real[asked[name]]
    }


def is_as_seen(obj: Obj, answer: Answer | None) -> bool:
    """Say whether what was read is the very object that was seen."""
    return answer is not None and _version(obj) in _versions(answer)


def _versions(answer: Answer) -> set[tuple[str, str]]:
    match answer:
        case Found(obj=found):
            return {_version(found)}
        case Listed(objects=there):
            return {_version(one) for one in there}
        case _:
            return set()


def _version(obj: Obj) -> tuple[str, str]:
    return meta.uid(obj), meta.resource_version(obj)
