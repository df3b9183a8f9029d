"""The database's knowledge for people and other tools: descriptions, lists, tables, published rates."""
