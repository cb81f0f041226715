"""How the live objects of phases are followed, and which of them were found."""

import pytest

from lamina.core.model.queries import Answer, Answers, Follow, Listed, Refused
from lamina.core.phases.live_objects import follows, live_objects, unfollowed
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.objects.kinds import Kind
from lamina.objects.types import Made
from tests.unit.core.phases.objects import CONFIG_MAP, NODE, THING


def wanted(kind: Kind | None, name: str, namespace: str = "team") -> Manifest:
    own = namespace if kind is None or kind.namespaced else ""
    api_version = kind.api_version if kind is not None else "ex.com/v1"
    obj: Made = {
        "apiVersion": api_version,
        "kind": kind.kind if kind else "Unknown",
        "metadata": {"name": name},
    }
    key = ObjectKey(api_version.rpartition("/")[0], obj["kind"], own, name)
    return Manifest(phase="first", key=key, kind=kind, obj=obj)


def live(kind: Kind, name: str, namespace: str = "team") -> Made:
    metadata = {"name": name, **({"namespace": namespace} if kind.namespaced else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def test_objects_are_followed_by_one_query_for_each_kind_and_namespace() -> None:
    asked = follows(
        [
            wanted(CONFIG_MAP, "b"),
            wanted(CONFIG_MAP, "a"),
            wanted(CONFIG_MAP, "a", "other"),
            wanted(THING, "a"),
            wanted(NODE, "n"),
        ]
    )

    assert asked == (
        Follow(kind=CONFIG_MAP, namespaces=("team",), names=("a", "b")),
        Follow(kind=CONFIG_MAP, namespaces=("other",), names=("a",)),
        Follow(kind=THING, namespaces=("team",), names=("a",)),
        Follow(kind=NODE, namespaces=None, names=("n",)),
    )


@pytest.mark.parametrize(
    "unknown",
    [wanted(None, "a"), wanted(CONFIG_MAP, ""), wanted(CONFIG_MAP, "a", "")],
    ids=["a kind that is not served", "no name", "no namespace"],
)
def test_what_cannot_exist_is_not_followed(unknown: Manifest) -> None:
    assert follows([unknown]) == ()
    assert live_objects([unknown], Answers({})) == {}


def test_objects_of_another_cluster_are_followed_there() -> None:
    [asked] = follows([wanted(CONFIG_MAP, "a")], "east")

    assert asked.cluster == "east"


def test_found_objects_are_returned_by_their_keys() -> None:
    a, n = wanted(CONFIG_MAP, "a"), wanted(NODE, "n")
    of_maps, of_nodes = follows([a, n])
    answers = Answers({of_maps: Listed((live(CONFIG_MAP, "a"),)), of_nodes: Listed((live(NODE, "n"),))})

    assert live_objects([a, n], answers) == {a.key: live(CONFIG_MAP, "a"), n.key: live(NODE, "n")}


@pytest.mark.parametrize("answer", [Listed(()), Refused(403, "forbidden"), None])
def test_an_object_that_was_not_found_has_no_entry(answer: Answer | None) -> None:
    one = wanted(CONFIG_MAP, "a")
    [query] = follows([one])

    assert live_objects([one], Answers({query: answer} if answer is not None else {})) == {}


def test_a_query_is_open_until_it_is_answered() -> None:
    manifests = [wanted(CONFIG_MAP, "a"), wanted(NODE, "n")]
    first, second = follows(manifests)

    assert unfollowed(manifests, Answers({})) == (first, second)
    assert unfollowed(manifests, Answers({first: Listed(())})) == (second,)
    assert unfollowed(manifests, Answers({first: Listed(()), second: Refused(403, "forbidden")})) == ()
