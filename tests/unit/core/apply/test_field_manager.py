"""What a manager created or updated becomes what it applied."""

from typing import Any

from lamina.core.apply.field_manager import has_updated, merge_into_apply, owned_references
from lamina.core.model.plan import Patch
from lamina.core.model.queries import Answers, DryRun, Found
from lamina.merge.is_applied import is_applied
from lamina.merge.patches import merge_patch
from lamina.objects.types import Made

BODY: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "1"}}
DATA: Made = {"f:data": {".": {}, "f:a": {}}}


def entry(manager: str, operation: str, fields: Made, **more: Any) -> Made:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def live(*entries: Made, **data: str) -> Made:
    metadata = {"name": "cm", "uid": "uid-cm", "resourceVersion": "7", "managedFields": list(entries)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"a": "1"}}


def merged(obj: Made, others: tuple[str, ...] = (), answers: Answers | None = None) -> Patch | DryRun | None:
    return merge_into_apply(obj, BODY, "ctl", others, answers or Answers())


def entries(obj: Made, patch: Patch | DryRun | None) -> list[Made]:
    assert isinstance(patch, Patch)
    after: list[Made] = merge_patch(obj, patch.patch)["metadata"]["managedFields"]
    return after


def test_a_created_object_becomes_an_applied_one_by_one_patch_at_the_version_that_was_read() -> None:
    obj = live(entry("ctl", "Update", DATA, time="2026-01-01T00:00:00Z"))

    patch = merged(obj)

    assert isinstance(patch, Patch)
    assert (patch.uid, patch.version) == ("uid-cm", "7")
    assert [(one["manager"], one["operation"]) for one in entries(obj, patch)] == [("ctl", "Apply")]
    assert is_applied(merge_patch(obj, patch.patch), BODY, "ctl")


def test_an_applied_object_has_nothing_to_merge() -> None:
    obj = live(entry("ctl", "Apply", DATA))

    assert not has_updated(obj, ("ctl",))
    assert merged(obj) is None


def test_other_managers_and_subresources_are_left_as_they_are() -> None:
    human, status = (
        entry("kubectl", "Update", {"f:data": {"f:b": {}}}),
        entry("ctl", "Update", {"f:status": {}}, subresource="status"),
    )
    obj = live(entry("ctl", "Update", DATA), human, status, a="1", b="2")

    assert entries(obj, merged(obj))[1:] == [human, status]


def test_former_names_of_the_manager_are_merged_too() -> None:
    obj = live(entry("ctl-old", "Update", {"f:data": {"f:b": {}}}), entry("ctl", "Apply", DATA), a="1", b="2")

    (only,) = entries(obj, merged(obj, ("ctl-old",)))

    assert (only["manager"], only["operation"]) == ("ctl", "Apply")
    assert only["fieldsV1"]["f:data"].keys() == {".", "f:a", "f:b"}


def test_what_only_a_former_name_of_the_manager_wrote_is_merged_whole() -> None:
    obj = live(entry("ctl-old", "Update", {"f:data": {**DATA["f:data"], "f:b": {}}}), a="1", b="2")

    (only,) = entries(obj, merged(obj, ("ctl-old",)))

    assert (only["manager"], only["operation"]) == ("ctl", "Apply")
    assert only["fieldsV1"]["f:data"].keys() == {".", "f:a", "f:b"}, (
        "the next apply removes what it does not have"
    )


def test_fields_that_the_server_defaulted_are_left_out_by_a_dry_run_of_the_apply() -> None:
    obj = live(
        entry("ctl", "Update", {"f:data": {".": {}, "f:a": {}, "f:defaulted": {}}}), a="1", defaulted="x"
    )

    query = merged(obj)

    assert isinstance(query, DryRun)
    exact: Made = {"f:data": {"f:a": {}}}
    found = Found({**obj, "metadata": {**obj["metadata"], "managedFields": [entry("ctl", "Apply", exact)]}})
    (only,) = entries(obj, merged(obj, answers=Answers({query: found})))
    assert only["fieldsV1"] == exact


def test_owner_references_that_a_manager_wrote_are_told_from_others() -> None:
    mine: Made = {"f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"one"}': {}}}}
    theirs: Made = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"two"}': {}}}}
    obj = live(entry("ctl", "Apply", mine), entry("kubectl", "Update", theirs))

    assert owned_references(obj, "ctl") == {"one"}


def test_a_list_of_owners_without_a_schema_is_owned_as_a_whole() -> None:
    obj = live(entry("ctl", "Apply", {"f:metadata": {"f:ownerReferences": {}}}))
    obj["metadata"]["ownerReferences"] = [{"uid": "one"}, {"uid": "two"}]

    assert owned_references(obj, "ctl") == {"one", "two"}
