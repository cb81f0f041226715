"""Custom resources: what a CRD may say, and what becomes of the objects it describes."""
