"""A change to a fleet: one template, a work in each selected cluster, and a way back that starts by itself."""
