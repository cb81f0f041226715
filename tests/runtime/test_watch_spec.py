"""Watches are resolved to the kinds that a cluster serves."""

from lamina.core.model.controller import Watch
from lamina.objects.kinds import Kind, Kinds
from lamina.runtime.cache.watch_spec import watch_specs

VERBS = frozenset(("list", "watch"))
KINDS = Kinds(Kind("v1", f"Kind{number}", f"kinds{number}", True, VERBS) for number in range(10))


def test_what_thousands_of_watches_select_is_found_out_once_whatever_they_enqueue() -> None:
    asked: list[Kind] = []

    def selects(kind: Kind) -> bool:
        asked.append(kind)
        return kind.kind == "Kind7"

    watches = [Watch(selects=selects, enqueue=lambda world, change: ()) for _ in range(3000)]
    for _ in range(2):
        for watch in watches:
            (spec,) = watch_specs(KINDS, watch)
            assert spec.kind.kind == "Kind7"

    assert len(asked) == len(KINDS)
