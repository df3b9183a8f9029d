"""Looking things up: instructions, and all that the database knows about them.

=================  =========================================================================================================
``instructions``   instructions by spelling or by filters; ``instruction``: one of them
``variants``       the legal combinations of qualifiers, expanded from the forms of the spec
``requirements``   the targets and PTX ISA versions that accept an instruction
``layouts``        the layout of each operand in registers, and how C, CuTe and Triton write it
``roles``          the kinds of operands: what a kind says of its operand, in PTX and in C++
``operands``       operands and the place of their data: in registers, in tensor memory, as an address
``conversion``     what brings the registers of one operand to another
``products``       the products that an instruction descriptor may choose: which are legal, and what they need
``descriptors``    matrix, instruction and column descriptors to bits and back
``names``          what an instruction is called in PTX, in C++ and in an address, and what a text may mean
``evidence``       what assemblers, chips and other projects said
``comparison``     what changed between two databases
``summaries``      descriptions, lists, tables and published rates, for people and other tools
=================  =========================================================================================================
"""
