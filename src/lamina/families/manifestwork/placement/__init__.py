"""Which clusters a Placement chooses, and what is known of the clusters it chooses from."""
