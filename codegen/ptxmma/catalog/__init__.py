"""Looking things up: instructions, their spellings, operands, layouts and requirements."""
