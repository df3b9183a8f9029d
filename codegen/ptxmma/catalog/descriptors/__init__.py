"""Descriptors: the fields of matrix, instruction and column descriptors, to bits and back."""
