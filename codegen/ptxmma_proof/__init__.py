"""The proof: compares the database with assemblers, a chip, other projects and the manual's own examples."""
