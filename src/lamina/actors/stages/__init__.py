"""
Stages: the lifecycle of simulated objects, as data (kwok's Stage).

A stage has a selector, a delay, and the changes it makes. `defaults.yaml` has the
stages that simulate kubelets; a user's file replaces them.
"""

from lamina.actors.stages.controller import stages_controller
from lamina.actors.stages.image_rules import without_image_rules
from lamina.actors.stages.parse import read_stages
from lamina.actors.stages.stage import Stage

__all__ = ["DEFAULTS", "READY_MADE", "Stage", "read_stages", "stages_controller", "without_image_rules"]

DEFAULTS = "defaults.yaml"
"""The file in this folder with the default stages."""

READY_MADE = "defaults.json"
"""The same stages as JSON, which parses faster: `make stages` writes it, and a test compares the two."""
