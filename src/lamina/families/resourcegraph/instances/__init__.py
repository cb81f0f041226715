"""The controllers of instances of generated kinds: their input revisions, their children and their deletion."""
