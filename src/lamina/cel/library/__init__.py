"""The function libraries: one file for each, with signatures and implementations."""
