"""The evaluator: generated Python code, and an interpreter for what that does not handle."""
