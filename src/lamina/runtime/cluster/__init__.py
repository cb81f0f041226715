"""The clusters that a manager is connected to, by name, and the cache view of each controller."""
