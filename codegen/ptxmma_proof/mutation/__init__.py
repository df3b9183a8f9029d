"""Mutation: changes one fact of the spec at a time, and asks which witness contradicts it.

Every mutant is built and derived like the spec.  Independent witnesses come first: answers of assemblers, results of a chip, CuTe's
layouts, and the number formats and compression of libraries.  A mutant that survives them meets the spec's own rules.  These show that two
entries do not fit together, but not which one is right.
"""
