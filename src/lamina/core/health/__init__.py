"""Whether an object is healthy, and how that is known."""
