"""
Controllers without a cluster: the real ones, on a dict, in wound time.

`settle` carries out their plans until nobody has anything left to do;
`Simulation` plays changes and failures on a whole cluster on paper, as `lamina
simulate` does; the sieve tells a story with something going wrong at each moment.
"""

from lamina.paper import START, Crashed, Desk, Key, Paper, Pass, Play, planned, settle
from lamina.simulation import Ending, Failures, Simulation, Told, read_failures

__all__ = [
    "START",
    "Crashed",
    "Desk",
    "Ending",
    "Failures",
    "Key",
    "Paper",
    "Pass",
    "Play",
    "Simulation",
    "Told",
    "planned",
    "read_failures",
    "settle",
]
