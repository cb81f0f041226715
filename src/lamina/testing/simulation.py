"""
Runs controllers on a simulated cluster: objects in a dict, and simulated time.

`settle` executes their plans until they are idle; `Simulation` simulates changes and
failures as `lamina simulate` does; `lamina.testing.crash_explorer` runs a scenario
with a perturbation at each of its checkpoints.
"""

from lamina.simulation import START, Crashed, Key, Loop, Pass, Process, SimulatedCluster, planned, settle
from lamina.simulation.scenario import Failures, FinalState, Simulation, TimelineEntry, read_failures

__all__ = [
    "START",
    "Crashed",
    "Failures",
    "FinalState",
    "Key",
    "Loop",
    "Pass",
    "Process",
    "SimulatedCluster",
    "Simulation",
    "TimelineEntry",
    "planned",
    "read_failures",
    "settle",
]
