"""Holding the database against a chip: every instruction that it runs, through the generated wrappers."""
