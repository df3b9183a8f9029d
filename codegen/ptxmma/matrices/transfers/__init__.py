"""Loads, stores, transpositions and copies on arrays, as the emulator executes them."""
