"""The default stages without their rules about names of images."""

from lamina.actors.stages import without_image_rules
from lamina.control_plane.load_stages import load_stages


def test_only_what_a_name_triggers_is_left_out() -> None:
    stages = load_stages()
    kept = without_image_rules(stages)

    left_out = {one.name for one in stages} - {one.name for one in kept}
    assert left_out >= {"pull-fails", "pull-backs-off", "pull-again", "crash"}
    assert {one.name for one in kept} >= {"start", "crash-by-share", "fail-after", "back-off", "restart"}
    texts = [one.key.text for stage in kept for one in stage.selector.containers or ()]
    assert "container.called" not in texts and "container.said" not in texts
    assert [one for one in stages if one.name == "change"] == [one for one in kept if one.name == "change"]
