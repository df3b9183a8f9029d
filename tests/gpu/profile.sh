#!/bin/bash
# Profiles the example kernels and the fastest of what bench.sh compares each with, one launch each, with Nsight Compute; prints a table with commas.
#
#   tests/gpu/profile.sh [KERNEL...] > docs/examples/profile.csv
#
# It takes the programs that bench.sh has built.
set -eu
cd "$(dirname "$0")/../.."
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(gemm_sm90 w4a16 sparse_gemm_sm90)
metrics=sm__cycles_elapsed.max,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,lts__t_sectors.sum,dram__sectors.sum
for kernel in "${kernels[@]}"; do
  ncu --profile-from-start off --clock-control none --csv --page raw --print-units base --metrics "$metrics" --log-file "build/profile_$kernel.csv" \
    "build/bench_$kernel" 0 > "build/profile_$kernel.txt"
done
python3 tests/gpu/profile.py "${kernels[@]}"
