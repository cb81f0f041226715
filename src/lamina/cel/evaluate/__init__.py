"""Carrying an expression out: generated Python where that is enough, step by step where it is not."""
