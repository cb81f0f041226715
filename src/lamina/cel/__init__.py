"""How expressions are read, checked and evaluated."""
