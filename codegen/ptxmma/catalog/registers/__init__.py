"""Matrices, metadata and scale factors to the registers of all threads, and back."""
