"""Looking things up: instructions, and all that the database knows about them.

=================  =========================================================================================================
``instructions``   instructions by spelling or by filters, and all that the database knows about one
``variants``       the legal combinations of qualifiers, expanded from the forms of the spec
``requirements``   the targets and PTX ISA versions that accept an instruction
``layouts``        the layout of each operand in registers, and how C, CuTe and Triton write it
``roles``          the kinds of operands: what a kind says of its operand, in PTX and in C++
``operands``       operands and the place of their data: in registers, in tensor memory, as an address
``conversion``     what brings the registers of one operand to another
``products``       the products that an instruction descriptor may choose: the rules that make them legal
``descriptors``    matrix, instruction and column descriptors to bits and back
``names``          what C++, addresses and texts call instructions and products
``evidence``       what assemblers, chips and other projects said; ``digest``: the facts that an answer covers
``comparison``     what changed between two databases
``summaries``      descriptions, lists, tables and published rates, for people and other tools
=================  =========================================================================================================
"""
