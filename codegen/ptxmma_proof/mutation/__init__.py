"""Mutation: change one fact of the spec at a time, and ask who contradicts it.

Every mutant is built and derived as the spec is.  Independent witnesses are asked first: answers of assemblers, results of a chip, CuTe's
layouts, number formats and compression as libraries have them.  What none of them contradicts is held against the spec's own rules, which
show that two entries do not fit together, and not that both are right.
"""
