"""CustomResourceDefinitions: the kinds they bring, who owns them, and their schemas."""
