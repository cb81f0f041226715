"""
What simulated objects go through, as data.

A stage says which objects it is for, how long they take to come to it, and
what is different then. `defaults.yaml` has those that stand in for kubelets;
a user's own file takes their place.
"""

from lamina.actors.stages.controller import staging
from lamina.actors.stages.reading import read_stages
from lamina.actors.stages.stage import Stage

__all__ = ["DEFAULTS", "READY_MADE", "Stage", "read_stages", "staging"]

DEFAULTS = "defaults.yaml"
"""The file in this folder that has the stages one gets without asking."""

READY_MADE = "defaults.json"
"""The same stages, read already: `make stages` writes it, and a test holds the two together."""
