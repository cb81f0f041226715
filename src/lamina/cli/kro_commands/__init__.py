"""The commands of `kro`."""
