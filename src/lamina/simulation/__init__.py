"""
A change played on paper: a copy of what there is, what somebody wants to do to it, and what is to go wrong.

The controllers are the real ones, the cluster is a dict, time is wound, and
nothing is written anywhere. What comes out is a story: who moved when and why,
and what it ended in.
"""

from lamina.simulation.applying import Manner
from lamina.simulation.blame import blamed
from lamina.simulation.failures import Failures, read_failures
from lamina.simulation.shapes import Shapes, builtin
from lamina.simulation.simulation import Ending, Simulation, Told

__all__ = [
    "Ending",
    "Failures",
    "Manner",
    "Shapes",
    "Simulation",
    "Told",
    "blamed",
    "builtin",
    "read_failures",
]
