"""Functions that expressions may call, one file a library: what they are called with, and what they do."""
