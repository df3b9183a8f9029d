"""Operations on whole matrices: sparsity, block scales, shared memory, the emulator, notations of other projects."""
