"""The reconciliation of one parent and its children."""
