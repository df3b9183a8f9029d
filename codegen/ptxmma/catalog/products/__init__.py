"""Products whose shape and types an instruction descriptor says: the rules that make them legal."""
