"""The words everything else speaks: what an object is, how to point at one, how to read and re-make its parts."""
