#!/bin/bash
# Builds the benchmarks of the example kernels, runs those whose libraries are here, and prints one table with commas.
#
#   tests/gpu/bench.sh [ROUNDS [KERNEL...]] > docs/examples/speed.csv   # sustained rounds, 5 if not given; there are five times as many short ones
#
# It may run in pieces: rows stay in build/speed, and the table has all that this card gave today. It needs a Hopper GPU, nvcc and cuBLAS;
# cuSPARSELt and PyTorch (pip install torch brings both), and CUTLASS (CUTLASS: its include directory). What is left out is said on standard error.
set -eu
cd "$(dirname "$0")/../.."
all=(gemm_sm90 w4a16 sparse_gemm_sm90 gemm_sm80 attention_sm90)
rounds=${1:-5}
kernels=("${@:2}")
nvidia-smi > /dev/null || { echo "$0: there is no GPU" >&2; exit 1; }
[ ${#kernels[@]} -gt 0 ] || kernels=("${all[@]}")

packages=$(python3 -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])' 2> /dev/null || true)
cutlass=${CUTLASS:-/usr/local/include}
fmha=${cutlass%/include}/examples/88_hopper_fmha
arch=(-gencode arch=compute_90a,code=sm_90a)
toolkit=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed "s/, \(.*\)/,driver \1,CUDA $toolkit,$(date +%Y-%m-%d),,,,,,,,,/")
rows=build/speed/$(nvidia-smi --query-gpu=uuid --format=csv,noheader)-$(date +%Y-%m-%d)
mkdir -p "$rows"

compile() {  # name of the program, options
  nvcc -std=c++17 -O3 -Igenerated/include -Idocs/examples "tests/gpu/bench_$1.cu" "${@:2}" -ldl -o "build/bench_$1"
}

find_file() { find ${packages:+"$packages"} /usr/local /usr/lib /usr/include -name "$1" 2> /dev/null | head -1 || true; }

build() {
  local program=build/bench_$1
  [ ! -e "$program" ] || [ -n "$(find tests/gpu docs/examples generated/include -newer "$program" -print -quit)" ] || return 0
  rm -f "$program"
  case $1 in
    gemm_sm90 | w4a16) compile "$1" "${arch[@]}" -lcublasLt ;;
    sparse_gemm_sm90)
      local library header
      library=$(find_file 'libcusparseLt.so*')
      header=$(find_file cusparseLt.h)
      if [ -n "$library" ] && [ -n "$header" ]; then
        compile "$1" "${arch[@]}" "-I$(dirname "$header")" -Xlinker "$library" -Xlinker -rpath -Xlinker "$(dirname "$library")"
      else
        echo "$1: cuSPARSELt is missing" >&2
      fi
      ;;
    gemm_sm80)
      if [ -e "$cutlass/cutlass/cutlass.h" ]; then
        nvcc -std=c++17 -O3 "-I$cutlass" -arch=native -c tests/gpu/cutlass_sm80.cu -o build/cutlass_sm80.o
        compile "$1" -arch=native build/cutlass_sm80.o -lcublasLt -lcuda
      else
        echo "$1: CUTLASS is missing" >&2
      fi
      ;;
    attention_sm90)
      rm -f build/cutlass_fmha.so
      if [ -e "$fmha" ]; then
        nvcc -std=c++17 -O3 -DNDEBUG --use_fast_math --expt-relaxed-constexpr "-I$cutlass" "-I$fmha" "${arch[@]}" -shared -Xcompiler -fPIC \
          tests/gpu/cutlass_fmha.cu -o build/cutlass_fmha.so &
      else
        echo "$1: CUTLASS's example 88 is missing" >&2
      fi
      [ -n "$packages" ] || echo "$1: PyTorch is missing" >&2
      [ -z "$packages" ] || compile "$1" "${arch[@]}" -shared -Xcompiler -fPIC
      wait
      ;;
  esac
}

run() {
  local choices=build/bench_$1.best
  rm -f "$choices"
  case $1 in
    attention_sm90)
      local theirs=build/cutlass_fmha.so
      [ -e "$theirs" ] || theirs=-
      python3 tests/gpu/bench_attention_sm90.py build/bench_attention_sm90 "$theirs" "$rounds" "$choices"
      ;;
    *) "build/bench_$1" "$rounds" "$choices" ;;
  esac
}

for kernel in "${kernels[@]}"; do build "$kernel" & done
wait
for kernel in "${kernels[@]}"; do
  [ -e "build/bench_$kernel" ] || continue
  run "$kernel" > "$rows/$kernel.part"
  mv "$rows/$kernel.part" "$rows/$kernel.csv"
done

echo "kernel,types,size,way,TFLOP/s,theirs,their best,ratio to theirs,ratio to their best,MHz,W,MHz of their best,W of their best"
for kernel in "${all[@]}"; do
  [ ! -e "$rows/$kernel.csv" ] || cat "$rows/$kernel.csv"
done
echo "$card"
