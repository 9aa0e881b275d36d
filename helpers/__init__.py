"""Shared code of the course: importing it has no side effects."""
