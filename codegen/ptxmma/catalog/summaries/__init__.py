"""What the database knows, for people and other tools: descriptions, lists, tables, published rates."""
