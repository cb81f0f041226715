"""ResourceGraphDefinition, of kro: graphs of resources with two levels of revisions."""
