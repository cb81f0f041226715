"""Admission policies: expressions that decide about other people's requests."""
