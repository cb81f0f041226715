"""What an installation consists of, as values: the objects of the chart, its rights, and what an uninstall removes."""
