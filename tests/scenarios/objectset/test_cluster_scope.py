"""ClusterObjectSets and ClusterObjectDeployments: what holds for a namespace holds for objects in two of them."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset import (
    test_archival,
    test_archiving_a_set,
    test_collisions,
    test_handover,
    test_immutability,
    test_numbers,
    test_pause,
    test_rollout,
    test_updates,
)
from tests.scenarios.objectset.stage import Stage, controlled

pytestmark = pytest.mark.asyncio(loop_scope="session")

Story = Callable[[Stage], Awaitable[None]]

handed_over = test_archival.test_a_revision_that_has_handed_everything_over_is_archived
never_deleted = test_archival.test_an_object_that_the_latest_revision_still_has_to_take_over_is_never_deleted
kept = test_archival.test_a_failed_revision_that_controls_what_the_latest_contains_is_kept

STORIES: dict[str, Story] = {
    "OS-1": test_rollout.test_a_phase_waits_for_the_one_before_it,
    "OS-2": test_rollout.test_the_next_phase_is_written_once_the_first_one_passes,
    "OS-3": test_rollout.test_what_has_succeeded_stays_so_while_it_is_unavailable,
    "OS-4": test_rollout.test_managed_objects_are_marked_and_have_one_controller_and_one_field_manager,
    "OS-5": test_rollout.test_listed_fields_are_restored_and_what_others_added_stays,
    "OS-6": test_rollout.test_an_object_that_is_deleted_by_hand_is_created_again,
    "OS-8": test_updates.test_an_object_is_updated_in_place_and_the_old_revision_archived,
    "OS-10": test_updates.test_the_old_revision_serves_until_the_new_one_is_ready,
    "OS-11": test_handover.test_objects_are_handed_over_in_the_order_of_the_phases,
    "OS-12": test_handover.test_what_the_old_set_still_controls_is_reconciled_by_it,
    "OS-13": test_handover.test_the_old_set_never_takes_an_object_back,
    "OS-14": test_archival.test_a_failed_revision_is_archived_once_its_successor_has_what_they_share,
    "OS-15-healthy": partial(handed_over, is_healthy=True),
    "OS-15-failing": partial(handed_over, is_healthy=False),
    "OS-16-taken-over": partial(kept, works=False),
    "OS-16-available": partial(kept, works=True),
    "OS-17-succeeded": partial(never_deleted, delay=0),
    "OS-17-never-succeeded": partial(never_deleted, delay=36000),
    "OS-18": test_archival.test_an_available_revision_survives_many_failing_ones,
    "OS-19-succeeded": test_archival.test_a_revision_that_has_succeeded_keeps_what_the_latest_contains,
    "OS-19-failed": test_archival.test_a_failed_revision_is_compared_with_the_latest_and_not_with_the_next,
    "OS-20": test_updates.test_an_earlier_template_becomes_a_new_revision_with_a_name_of_its_own,
    "OS-23": test_pause.test_a_paused_set_observes_and_writes_nothing_until_it_is_active_again,
    "OS-24": test_pause.test_a_set_that_is_created_paused_writes_no_object,
    "OS-25-rollout": test_pause.test_a_paused_deployment_pauses_its_sets_in_the_middle_of_a_rollout,
    "OS-25-resumed": test_pause.test_a_deployment_that_goes_on_resumes_the_sets_that_it_paused,
    "OS-25-by-hand": test_pause.test_a_set_that_was_paused_by_hand_stays_so_when_its_deployment_goes_on,
    "OS-26": test_archiving_a_set.test_the_objects_of_the_last_phase_are_deleted_first,
    **{
        f"OS-31-{protection}-{'foreign' if has_controller else 'orphan'}": partial(
            test_collisions.check_collision,
            protection=protection,
            has_controller=has_controller,
            takes=takes,
        )
        for protection, has_controller, takes in test_collisions.MATRIX
    },
    **{
        f"OS-47-{field}": partial(test_immutability.check_immutable, field=field, change=change)
        for field, change in test_immutability.CHANGES.items()
    },
    "OS-47-lifecycle": test_immutability.check_lifecycle,
    "OS-48": test_numbers.check_missing_previous,
    "OS-50": test_numbers.check_concurrent,
}


@check("OS-53")
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
async def test_a_scenario_of_a_namespace_holds_for_the_cluster(cluster_stage: Stage, story: Story) -> None:
    await story(cluster_stage)


@check("OS-53")
async def test_a_cluster_set_has_objects_in_several_namespaces_and_of_cluster_scope(
    cluster_stage: Stage,
) -> None:
    stage = cluster_stage
    role = stage.named("role")
    cluster_role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role},
        "rules": [],
    }
    async with stage.running():
        maps = [stage.config_map(name) for name in ("cm-a", "cm-b")]
        await stage.given_set("v1", stage.phase("p1", cluster_role, *maps))
        found = await stage.until_set("v1")

        assert controlled(found) == [role, "cm-a", "cm-b"]
        listed = [one.get("namespace") for one in found["status"]["controllerOf"]]
        assert listed == [None, *stage.namespaces]
        assert {meta.namespace(await stage.live(name)) for name in ("cm-a", "cm-b")} == set(stage.namespaces)

        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_gone(stage.set_ref("v1"))

        assert await stage.listed(("v1", "ConfigMap")) == []
        ref = meta.ref(cluster_role)
        assert await stage.get(ref) is None
