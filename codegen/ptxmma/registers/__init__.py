"""Arrays to the registers of all threads, and back: what the methods ``pack`` and ``unpack`` do."""
