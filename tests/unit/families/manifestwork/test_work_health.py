"""The health of a ManifestWork without a replica set, from what its agent reports."""

import pytest

from lamina.core.health.kstatus import SETTLED, Health
from lamina.families.manifestwork.family import family
from lamina.objects.types import Made, Obj

GENERATION = 2
APPLIED = ("Applied", "True")


def work(*reported: tuple[str, str], rules: tuple[str, ...] = (), observed: int = GENERATION) -> Made:
    rule = [{"condition": name, "type": "CEL"} for name in rules]
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "web", "namespace": "c1", "generation": GENERATION},
        "spec": {"workload": {"manifests": []}, "manifestConfigs": [{"conditionRules": rule}]},
        "status": {
            "conditions": [
                {"type": name, "status": status, "message": "so", "observedGeneration": observed}
                for name, status in reported
            ]
        },
    }


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (work(),                                                 Health("not applied by its agent yet")),
        (work(("Applied", "False")),                             Health("not applied: so")),
        (work(APPLIED, ("Available", "True"), observed=1),       Health("not applied by its agent yet")),
        (work(APPLIED, ("Progressing", "True")),                 Health("progressing: so")),
        (work(APPLIED, ("Degraded", "True")),                    Health("degraded: so", "degraded: so")),
        (work(APPLIED, ("Progressing", "False"), ("Degraded", "False")), SETTLED),
        (work(APPLIED, ("Available", "True")),                   SETTLED),
        (work(APPLIED, ("Available", "True"), rules=("Progressing",)), Health("its agent has not reported Progressing yet")),
    ],
)  # fmt: skip
def test_a_work_is_as_healthy_as_its_agent_reports_for_its_latest_generation(
    obj: Obj, expected: Health
) -> None:
    assert family().health(obj) == expected


def refused(*messages: str, observed: int = GENERATION, said: str = "Failed to apply manifest work") -> Made:
    """Return a work of which the agent could not apply some manifests; an empty message is one that it could."""
    obj = work(("Applied", "False"))
    obj["status"]["conditions"][0]["message"] = said
    obj["status"]["resourceStatus"] = {
        "manifests": [
            {
                "resourceMeta": {"kind": "RoleBinding", "namespace": "default", "name": f"b{number}"},
                "conditions": [
                    {
                        "type": "Applied",
                        "status": "False" if message else "True",
                        "message": message,
                        "observedGeneration": observed,
                    }
                ],
            }
            for number, message in enumerate(messages)
        ]
    }
    return obj


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (refused("", "Failed to apply manifest: cannot change roleRef", "Failed to apply manifest: no"), "RoleBinding default/b1: cannot change roleRef"),
        (refused(f"{'x' * 300} cannot change roleRef"), f"RoleBinding default/b0: {'x' * 120}…{'x' * 98} cannot change roleRef"),
        (refused("of an older generation", observed=1), "Failed to apply manifest work"),
        (refused("another cause", said="its record was refused"), "its record was refused"),
        (refused(), "Failed to apply manifest work"),
    ],
)  # fmt: skip
def test_a_work_that_is_not_applied_has_the_cause_of_its_first_refused_manifest(
    obj: Obj, message: str
) -> None:
    assert family().health(obj) == Health(f"not applied: {message}")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("work.open-cluster-management.io/v1", "ManifestWorkReplicaSet"), ("example.com/v1", "ManifestWork")],
)
def test_the_health_of_other_kinds_is_left_to_others(api_version: str, kind: str) -> None:
    assert family().health({**work(), "apiVersion": api_version, "kind": kind}) is None
