#!/bin/bash
# Profiles the example kernels and what bench.sh found to be the fastest other, sustained, one launch each, with Nsight Compute; prints a table with commas.
#
#   tests/gpu/profile.sh [KERNEL...] > docs/examples/profile.csv
#
# It takes the programs that bench.sh has built, and its choices: build/bench_*.best.
set -eu
cd "$(dirname "$0")/../.."
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(gemm_sm90 w4a16 sparse_gemm_sm90 gemm_sm80 attention_sm90)
metrics=sm__cycles_elapsed.max,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,lts__t_sectors.sum,dram__sectors.sum
metrics+=,lts__t_sectors.avg.pct_of_peak_sustained_elapsed
for kernel in "${kernels[@]}"; do
  program=("build/bench_$kernel")
  [ "$kernel" != attention_sm90 ] || program=(python3 tests/gpu/bench_attention_sm90.py "${program[0]}" -)
  ncu --target-processes all --profile-from-start off --clock-control none --csv --page raw --print-units base --metrics "$metrics" \
    --log-file "build/profile_$kernel.csv" "${program[@]}" 0 "build/bench_$kernel.best" > "build/profile_$kernel.txt"
done
python3 tests/gpu/profile.py "${kernels[@]}"
