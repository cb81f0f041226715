"""The designs that people already use, each a thin translation of the one idea in core."""
