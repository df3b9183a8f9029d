"""Arrays in and out of registers: element types as bits and numbers, and the order of elements in registers."""
