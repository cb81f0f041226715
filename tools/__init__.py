"""Programs run while building lamina, never by it."""
