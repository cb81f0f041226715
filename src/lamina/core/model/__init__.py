"""The values that controllers are made of: world, controller, plan, queries, events."""
