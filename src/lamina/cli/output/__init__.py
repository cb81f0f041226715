"""How commands print owners, plans, simulations and tables."""
