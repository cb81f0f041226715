"""
What families and actors share: controllers, revisions, rollouts, ownership and health, as values.

It has no I/O and knows no family: functions return a plan for a world.
"""
