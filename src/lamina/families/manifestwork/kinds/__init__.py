"""The definitions of the kinds of this family, the hub's and the spoke's."""
