"""What was found when the database was held against assemblers, a chip and other projects: the reports in ``spec/evidence/``."""
