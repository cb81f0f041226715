"""
A cluster on paper: a dict of objects on which any controllers run in wound time.

It carries out the real plans of the real controllers as a server would, and
neither waits nor reads a clock: an hour of rollouts takes as long as the planning
in it. What needs the outside, hooks to be called and objects to be fetched, is
done by functions that are handed in.
"""

from lamina.paper.cluster import START, Paper
from lamina.paper.desk import Desk
from lamina.paper.passes import Crashed, Key, Pass
from lamina.paper.play import Play
from lamina.paper.settle import planned, settle

__all__ = ["START", "Crashed", "Desk", "Key", "Paper", "Pass", "Play", "planned", "settle"]
