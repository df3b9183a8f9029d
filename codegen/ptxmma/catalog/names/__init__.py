"""Names of instructions and products outside of PTX: in C++, in an address, in a text."""
