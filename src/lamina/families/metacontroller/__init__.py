"""Controllers as webhooks: a hook says what a parent's children should be, and they are made so."""
