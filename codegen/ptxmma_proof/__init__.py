"""Holding the database against the world: the assemblers of all CUDA releases."""
