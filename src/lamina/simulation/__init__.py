"""
Simulates clusters: objects in a dict, on which real controllers run in simulated time.

The simulated API server performs the plans of the real controllers, and nothing
waits or reads a clock: an hour of rollouts takes as long as the planning in it.
Calls of hooks and reads of a real cluster are functions that the caller passes in.
"""

from lamina.simulation.cluster.apiserver import START, SimulatedCluster
from lamina.simulation.loop import Loop
from lamina.simulation.process.process import Process
from lamina.simulation.process.record import Crashed, Key, Pass
from lamina.simulation.settle import planned, settle

__all__ = ["START", "Crashed", "Key", "Loop", "Pass", "Process", "SimulatedCluster", "planned", "settle"]
