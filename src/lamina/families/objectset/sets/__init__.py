"""The controller of ObjectSets: one revision, rolled out phase by phase."""
