"""Products whose shape and types an instruction descriptor says: which are legal, and what they need."""
