"""
Simulates a change: a copy of a cluster's objects, the change, and the failures to inject.

The controllers are the real ones, the cluster and the clock are simulated, and
nothing is written to a real cluster. The result is a timeline of what each
controller did and why, and the final state of each owner.
"""

from lamina.simulation.admission_adapter import AdmissionAdapter, builtin
from lamina.simulation.injected_faults import Failures
from lamina.simulation.scenario.baseline import against_baseline
from lamina.simulation.scenario.failures import read_failures
from lamina.simulation.scenario.final_state import FinalState
from lamina.simulation.scenario.kubectl_apply import ApplyOptions
from lamina.simulation.scenario.simulation import Simulation, TimelineEntry

__all__ = [
    "AdmissionAdapter",
    "ApplyOptions",
    "Failures",
    "FinalState",
    "Simulation",
    "TimelineEntry",
    "against_baseline",
    "builtin",
    "read_failures",
]
