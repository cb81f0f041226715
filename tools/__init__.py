"""Programs that generate parts of the source tree."""
