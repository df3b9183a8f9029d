#!/bin/bash
# Builds the benchmarks of the example kernels, runs those whose libraries are here, and prints one table with commas.
#
#   tests/gpu/bench.sh [ROUNDS] > docs/examples/speed.csv   # sustained rounds, 5 if not given; there are five times as many short ones
#
# It needs a Hopper GPU, nvcc and cuBLAS; cuSPARSELt and PyTorch (pip install torch brings both), and CUTLASS (CUTLASS: its include
# directory). What is left out is said on standard error.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
arch=(-gencode arch=compute_90a,code=sm_90a)
programs=()

compile() {  # name of the program, options
  nvcc -std=c++17 -O3 -Igenerated/include -Idocs/examples "tests/gpu/bench_$1.cu" "${@:2}" -ldl -o "build/bench_$1"
}

for kernel in gemm_sm90 w4a16; do
  compile "$kernel" "${arch[@]}" -lcublasLt &
  programs+=("build/bench_$kernel")
done

packages=$(python3 -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])' 2> /dev/null || true)
library=$(find ${packages:+"$packages"} /usr/local /usr/lib -name 'libcusparseLt.so*' 2> /dev/null | head -1 || true)
header=$(find ${packages:+"$packages"} /usr/local /usr/include -name cusparseLt.h 2> /dev/null | head -1 || true)
if [ -n "$library" ] && [ -n "$header" ]; then
  compile sparse_gemm_sm90 "${arch[@]}" "-I$(dirname "$header")" -Xlinker "$library" -Xlinker -rpath -Xlinker "$(dirname "$library")" &
  programs+=(build/bench_sparse_gemm_sm90)
else
  echo "sparse_gemm_sm90: cuSPARSELt is missing" >&2
fi

cutlass=${CUTLASS:-/usr/local/include}
if [ -e "$cutlass/cutlass/cutlass.h" ]; then
  nvcc -std=c++17 -O3 "-I$cutlass" -arch=native -c tests/gpu/cutlass_sm80.cu -o build/cutlass_sm80.o
  compile gemm_sm80 -arch=native build/cutlass_sm80.o -lcublasLt -lcuda
  programs+=(build/bench_gemm_sm80)
else
  echo "gemm_sm80: CUTLASS is missing" >&2
fi

fmha=${cutlass%/include}/examples/88_hopper_fmha
if [ -e "$fmha" ]; then
  nvcc -std=c++17 -O3 -DNDEBUG --use_fast_math --expt-relaxed-constexpr "-I$cutlass" "-I$fmha" "${arch[@]}" -shared -Xcompiler -fPIC \
    tests/gpu/cutlass_fmha.cu -o build/cutlass_fmha.so
  cutlass_attention=build/cutlass_fmha.so
else
  echo "attention_sm90: CUTLASS's example 88 is missing" >&2
fi

if [ -n "$packages" ]; then
  nvcc -std=c++17 -O3 -Igenerated/include -Idocs/examples "${arch[@]}" -shared -Xcompiler -fPIC tests/gpu/bench_attention_sm90.cu \
    -o build/attention_sm90.so
  programs+=("python3 tests/gpu/bench_attention_sm90.py build/attention_sm90.so ${cutlass_attention:--}")
else
  echo "attention_sm90: PyTorch is missing" >&2
fi
wait

echo "kernel,types,size,way,TFLOP/s,theirs,their best,ratio to theirs,ratio to their best,MHz,W,MHz of their best,W of their best"
for program in "${programs[@]}"; do $program "$@"; done
toolkit=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed "s/, \(.*\)/,driver \1,CUDA $toolkit,$(date +%Y-%m-%d),,,,,,,,,/"
