"""The decisions and texts of the command line of this family."""
