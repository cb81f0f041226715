"""Where API servers ask about writes: how they find the way here, and who answers them."""
