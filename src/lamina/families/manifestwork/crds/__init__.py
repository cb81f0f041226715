"""The CustomResourceDefinitions of this family, of the hub and of managed clusters."""
