"""Names of instructions: in PTX, in C++, in a text, in an address; and what a name that is none may mean."""
