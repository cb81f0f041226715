"""
What is to go wrong between a client and a server, as data.

A fault says which requests it is about and what happens to them. A table of
faults is consulted by the embedded server before it routes anything, and by a
transport that breaks things on the way to any other server. Nothing here knows
a kind.
"""

from lamina.faults.fault import LONGEST, Cut, Expire, Fault, Refuse, Silence, Slow, Stale, read_fault, shown
from lamina.faults.request import VERBS, Asked, asked
from lamina.faults.table import Faults

__all__ = [
    "LONGEST",
    "VERBS",
    "Asked",
    "Cut",
    "Expire",
    "Fault",
    "Faults",
    "Refuse",
    "Silence",
    "Slow",
    "Stale",
    "asked",
    "read_fault",
    "shown",
]
