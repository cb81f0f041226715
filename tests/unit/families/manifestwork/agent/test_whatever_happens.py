"""Whatever happens to a work and its cluster, in whatever order: in the end there is what is wanted, and nothing else."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import NotFound
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import Crashed
from lamina.simulation.cluster.kinds import CONFIG_MAP
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy

NAMES = ("a", "b", "c")

manifests = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(
        st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), min_size=1),
        st.dictionaries(st.sampled_from(("l1", "l2")), st.sampled_from("12")),
        st.sampled_from(("Update", "ServerSideApply")),
    ),
    max_size=3,
)
events = st.one_of(
    st.tuples(st.just("want"), manifests),
    st.tuples(st.just("drift"), st.sampled_from(NAMES)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("crash"), st.integers(0, 6)),
    st.tuples(st.just("run"), st.none()),
)


def written(wanted: dict[str, Any]) -> tuple[list[Made], list[Made]]:
    made, how = [], []
    for name, (data, labels, manner) in wanted.items():
        manifest = meta.with_metadata(config_map(name, **data), labels=labels)
        made.append(manifest)
        how.append(
            config_for(manifest, **strategy(manner, **({"force": True} if manner != "Update" else {})))
        )
    return made, how


@settings(max_examples=60)
@given(story=st.lists(events, max_size=12), last=manifests, dice=st.randoms(use_true_random=False))
def test_in_the_end_there_is_what_is_wanted_and_nothing_else(story: Any, last: Any, dice: Any) -> None:
    spoke = Spoke()
    for event, about in [*story, ("want", last)]:
        match event:
            case "want":
                made, how = written(about)
                spoke.want(*made, manifestConfigs=how)
            case "drift":
                with suppress(NotFound):
                    spoke.home.patch(CONFIG_MAP.ref("default", about), {"data": {"drifted": "yes"}})
            case "delete":
                with suppress(NotFound):
                    spoke.home.delete(CONFIG_MAP.ref("default", about))
            case "crash":
                with suppress(Crashed):
                    spoke.run(crash_after=about, random=dice)
            case "run":
                spoke.run(random=dice)
    spoke.run(random=dice)

    there = {meta.name(one): one for one in spoke.home.listed(CONFIG_MAP)}
    assert set(there) == set(last)
    for name, (data, _, manner) in last.items():
        found = there[name]["data"]
        # Server-side apply leaves the fields of other managers alone.
        assert data.items() <= found.items()
        assert manner != "Update" or found == data
        assert [one["name"] for one in meta.owner_refs(there[name])] == ["hash-w"]
    assert {name for name, _ in spoke.listed()} == set(last)
    assert all(uid for _, uid in spoke.listed())
    assert spoke.said("Applied")[0] == "True"
    before = len(spoke.written)
    spoke.run(random=dice)
    assert len(spoke.written) == before, "a settled work costs nothing"


@settings(max_examples=40)
@given(story=st.lists(manifests, min_size=1, max_size=6), crash=st.integers(0, 10))
def test_labels_are_those_of_the_last_manifest_and_no_others(story: Any, crash: int) -> None:
    spoke = Spoke()
    for wanted in story:
        # One manner all the way: what was stated and what was set are two different records.
        plain = {name: (data, labels, "Update") for name, (data, labels, _) in wanted.items()}
        made, how = written(plain)
        spoke.want(*made, manifestConfigs=how)
        with suppress(Crashed):
            spoke.run(crash_after=crash)
    spoke.run()

    labels = {meta.name(one): dict(meta.labels(one)) for one in spoke.home.listed(CONFIG_MAP)}
    assert labels == {name: wanted for name, (_, wanted, _) in story[-1].items()}
