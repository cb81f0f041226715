"""The controller of ResourceGraphDefinitions: revisions, the generated kind, rollback, retention and propagation."""
