"""
Fault injection between a client and a server, as data.

A fault selects requests and says what happens to them. The embedded server
consults a table of faults before routing, and a client transport does so for any
other server. Nothing here knows a kind.
"""

from lamina.faults.fault import LONGEST, Cut, Expire, Fault, Refuse, Silence, Slow, Stale, read_fault, shown
from lamina.faults.request import VERBS, RequestAttributes, attributes_of
from lamina.faults.table import Faults

__all__ = [
    "LONGEST",
    "VERBS",
    "Cut",
    "Expire",
    "Fault",
    "Faults",
    "Refuse",
    "RequestAttributes",
    "Silence",
    "Slow",
    "Stale",
    "attributes_of",
    "read_fault",
    "shown",
]
