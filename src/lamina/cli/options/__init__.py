"""Options that several commands share, and the values they parse to."""
