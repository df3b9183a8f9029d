"""Mutation: change one fact of the spec at a time, and ask whether an independent fact contradicts it.

Every mutant is built, checked and derived as the spec is, and held against what is known without the spec: rules and printed
formulas, stored answers of assemblers, stored results of a chip, the layouts of CuTe, number formats and compression as libraries have
them.  What nothing contradicts survives: a fact that nobody would miss if it were wrong.
"""
