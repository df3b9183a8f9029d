"""What moves or multiplies whole matrices: sparsity, block scales, shared memory, the emulator, notations of other projects."""
