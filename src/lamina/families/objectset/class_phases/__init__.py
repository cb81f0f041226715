"""The controller of ObjectSetPhases: one phase of a set, on this cluster or on another one."""
