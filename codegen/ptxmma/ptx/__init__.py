"""PTX as text: one reader of modules and of inline assembly, and the lines that assemblers are asked."""
