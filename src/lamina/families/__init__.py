"""
Families: Metacontroller, Open Cluster Management's ManifestWorkReplicaSets, Package Operator's ObjectSets.

Each maps its kinds and conditions to core.
"""
