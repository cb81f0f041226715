"""Lists: chunks, versions and selectors. C41 to C43."""

import pytest

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import config_map


def _seven(api: Api, configmaps: str) -> None:
    for number in range(1, 8):
        api.post(configmaps, config_map(f"ch-{number}", {"chunk": "y"}))


@check("C41")
def test_a_list_in_chunks_shows_one_moment(api: Api, kubectl: Kubectl, configmaps: str) -> None:
    _seven(api, configmaps)
    first = api.get(f"{configmaps}?limit=3").json
    token, version = first["metadata"]["continue"], first["metadata"]["resourceVersion"]
    later = api.post(configmaps, config_map("later")).json["metadata"]["name"]
    rest = api.get(f"{configmaps}?limit=500&continue={token}").json

    assert len(first["items"]) == 3
    assert first["metadata"]["remainingItemCount"] > 0
    assert rest["metadata"]["resourceVersion"] == version
    assert later not in [one["metadata"]["name"] for one in rest["items"]]
    assert not rest["metadata"].get("continue")
    assert api.get(f"{configmaps}?continue=garbage").code == 400
    selected = api.get(f"{configmaps}?limit=3&labelSelector=chunk%3Dy").json
    assert "remainingItemCount" not in selected["metadata"]
    assert api.get(f"{configmaps}?continue={token}&resourceVersion=1").code == 400
    listed = kubectl("get", "cm", "--chunk-size=2", "-l", "chunk=y", "--no-headers")
    assert len(listed.splitlines()) == 7


@check("C42")
def test_a_list_can_ask_for_a_version(api: Api, configmaps: str) -> None:
    version = api.get(f"{configmaps}?limit=1").json["metadata"]["resourceVersion"]
    api.post(configmaps, {"metadata": {"generateName": "after-"}})

    assert api.get(f"{configmaps}?resourceVersion=0").code == 200
    fresh = api.get(f"{configmaps}?resourceVersion={version}&resourceVersionMatch=NotOlderThan").json
    assert int(fresh["metadata"]["resourceVersion"]) >= int(version)
    exact = api.get(f"{configmaps}?resourceVersion={version}&resourceVersionMatch=Exact").json
    assert exact["metadata"]["resourceVersion"] == version
    assert all(int(one["metadata"]["resourceVersion"]) <= int(version) for one in exact["items"])


@check("C42")
def test_a_version_that_is_yet_to_come_is_a_timeout(api: Api, configmaps: str) -> None:
    refused = api.get(f"{configmaps}?resourceVersion=999999999").json

    assert (refused["code"], refused["reason"]) == (504, "Timeout")
    assert refused["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert refused["details"]["retryAfterSeconds"] == 1


@check("C42")
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersionMatch=Exact",                     422),
        ("resourceVersion=0&resourceVersionMatch=Exact",   422),
        ("resourceVersion=abc",                            400),
    ],
)  # fmt: skip
def test_versions_that_make_no_sense_are_refused(api: Api, configmaps: str, query: str, code: int) -> None:
    assert api.get(f"{configmaps}?{query}").code == code


@check("C43")
def test_labels_select(api: Api, configmaps: str) -> None:
    _seven(api, configmaps)

    def found(selector: str) -> int:
        listed = api.get(f"{configmaps}?labelSelector={selector}").json
        return sum(one["metadata"]["name"].startswith("ch-") for one in listed["items"])

    assert found("chunk=y") == found("chunk%20in%20(y,z)") == found("chunk") == 7
    assert found("chunk%21%3Dy") == found("%21chunk") == found("chunk%20notin%20(y)") == 0
    assert api.get(f"{configmaps}?labelSelector=a%3D%3D%3D").code == 400
