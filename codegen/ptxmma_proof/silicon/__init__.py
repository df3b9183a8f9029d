"""Compares the database with a chip: runs every instruction through the generated wrappers."""
