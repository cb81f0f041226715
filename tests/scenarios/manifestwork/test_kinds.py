"""The kinds of a hub: what its server fills in, drops and refuses."""

from typing import Any

import pytest

from lamina.errors import Invalid
from lamina.families.manifestwork.labels import (
    CLUSTER_GROUP,
    PLACEMENT_VERSION,
    REPLICA_SET_VERSION,
    WORK_VERSION,
)
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.scenarios.manifestwork.stage import Stage
from tests.unit.families.manifestwork.fleet import OK1, template

pytestmark = pytest.mark.asyncio(loop_scope="session")


def replica_set(
    stage: Stage, name: str, strategy: Any = None, version: str = REPLICA_SET_VERSION, **spec: Any
) -> Made:
    ref: Made = {"name": "place"} | ({"rolloutStrategy": strategy} if strategy is not None else {})
    return {
        "apiVersion": version,
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": name, "namespace": stage.namespace},
        "spec": {"placementRefs": [ref], "manifestWorkTemplate": OK1, **spec},
    }


async def test_what_is_not_said_is_filled_in(stage: Stage) -> None:
    made = await stage.create(replica_set(stage, "plain"))
    assert made["spec"]["placementRefs"] == [
        {"name": "place", "rolloutStrategy": {"type": "All", "all": _pace("None")}}
    ]
    assert (made["spec"]["cascadeDeletionPolicy"], made["spec"]["revisionHistoryLimit"]) == ("Background", 10)

    config = {
        "resourceIdentifier": {"resource": "configmaps", "name": "x"},
        "updateStrategy": {"serverSideApply": {}},
    }
    content = {**template(rules=False), "deleteOption": {}, "manifestConfigs": [config]}
    made = await stage.create(
        replica_set(stage, "rich", {"type": "Progressive", "progressive": {}}, manifestWorkTemplate=content)
    )
    filled = made["spec"]["manifestWorkTemplate"]
    assert filled["deleteOption"] == {"propagationPolicy": "Foreground"}
    assert filled["manifestConfigs"][0]["updateStrategy"] == {
        "type": "Update",
        "serverSideApply": {"fieldManager": "work-agent"},
    }
    assert filled["manifestConfigs"][0]["feedbackScrapeType"] == "Poll"
    assert made["spec"]["placementRefs"][0]["rolloutStrategy"]["progressive"] == _pace("None")


def _pace(deadline: str) -> Made:
    return {"minSuccessTime": "0", "progressDeadline": deadline, "maxFailures": 0}


async def test_what_no_field_is_called_is_dropped_but_manifests_keep_everything(stage: Stage) -> None:
    odd = {"rolloutType": "Progressive", "timeout": "5s"}
    content = {**OK1, "unknown": 1}
    content["workload"] = {"manifests": [{**OK1["workload"]["manifests"][0], "anything": {"goes": None}}]}
    made = await stage.create(replica_set(stage, "odd", odd, manifestWorkTemplate=content))

    assert made["spec"]["placementRefs"][0]["rolloutStrategy"] == {"type": "All"}
    assert "unknown" not in made["spec"]["manifestWorkTemplate"]
    assert made["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["anything"] == {"goes": None}


async def test_either_version_is_the_same_object(stage: Stage) -> None:
    made = await stage.create(replica_set(stage, "either", version="work.open-cluster-management.io/v1"))
    other = await stage.client.get(
        Ref(REPLICA_SET_VERSION, "ManifestWorkReplicaSet", stage.namespace, "either")
    )

    assert other["apiVersion"] == REPLICA_SET_VERSION
    assert (meta.uid(other), meta.resource_version(other)) == (meta.uid(made), meta.resource_version(made))
    assert other["spec"] == made["spec"]


@pytest.mark.parametrize("value", ["AbortAll", "", None])
async def test_a_failure_strategy_may_be_one_word_or_none(stage: Stage, value: Any) -> None:
    await stage.create(replica_set(stage, "failure", {"type": "All", "failureStrategy": value}))


@pytest.mark.parametrize(
    "strategy",
    [
        {"type": "Some"},
        {"failureStrategy": "AbortSome"},
        *({"progressive": {"progressDeadline": text}} for text in ("5|", "10sX", "2d", "0", "10g", "")),
        *({"progressive": {"maxFailures": text}} for text in ("few", "101%", "-1")),
        {"progressive": {"maxConcurrency": "5.5%"}},
    ],
    ids=str,
)
async def test_strategies_that_mean_nothing_are_refused(stage: Stage, strategy: Made) -> None:
    await stage.given_namespace(stage.namespace)
    with pytest.raises(Invalid):
        await stage.client.create(replica_set(stage, "bad", strategy))


@pytest.mark.parametrize(
    "spec",
    [{"placementRefs": []}, {"placementRefs": [{"name": ""}]}, {"revisionHistoryLimit": -1}, {"cascadeDeletionPolicy": "Never"}],
    ids=str,
)  # fmt: skip
async def test_specs_that_mean_nothing_are_refused(stage: Stage, spec: Made) -> None:
    await stage.given_namespace(stage.namespace)
    with pytest.raises(Invalid):
        await stage.client.create(replica_set(stage, "bad", **spec))


async def test_works_are_read_closely(stage: Stage) -> None:
    await stage.given_namespace(stage.namespace)

    def work(**spec: Any) -> Made:
        metadata = {"name": "w", "namespace": stage.namespace}
        return {"apiVersion": WORK_VERSION, "kind": "ManifestWork", "metadata": metadata, "spec": spec}

    named = {"resource": "configmaps", "name": "x"}
    twice = [{"name": "replicas", "path": ".a"}, {"name": "replicas", "path": ".b"}]
    for config in (
        {"resourceIdentifier": named, "feedbackRules": [{"type": "JSONPaths", "jsonPaths": twice}]},
        {"resourceIdentifier": named, "updateStrategy": {"type": "Sometimes"}},
        {
            "resourceIdentifier": named,
            "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"fieldManager": "me"}},
        },
        {"resourceIdentifier": {"name": "x"}},
    ):
        with pytest.raises(Invalid):
            await stage.client.create(work(manifestConfigs=[config]))


async def test_clusters_and_placements_have_their_defaults(stage: Stage) -> None:
    cluster = await stage.client.create(
        {
            "apiVersion": f"{CLUSTER_GROUP}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": f"mc-{stage.id}"},
            "spec": {},
        }
    )
    stage.made.append(meta.ref(cluster))
    assert cluster["spec"] == {"hubAcceptsClient": False, "leaseDurationSeconds": 60}

    chosen = await stage.client.create(
        {
            "apiVersion": f"{CLUSTER_GROUP}/v1beta2",
            "kind": "ManagedClusterSet",
            "metadata": {"name": f"set-{stage.id}"},
        }
    )
    stage.made.append(meta.ref(chosen))
    assert chosen["spec"] == {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}

    tolerated = {"tolerations": [{"key": "a"}], "decisionStrategy": {"groupStrategy": {}}}
    placement = await stage.create(
        {
            "apiVersion": PLACEMENT_VERSION,
            "kind": "Placement",
            "metadata": {"name": "p", "namespace": stage.namespace},
            "spec": tolerated,
        }
    )
    assert placement["spec"] == {
        "tolerations": [{"key": "a", "operator": "Equal"}],
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}},
    }
