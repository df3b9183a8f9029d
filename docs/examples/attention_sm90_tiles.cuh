// Which tiles of O there are for attention_sm90.cuh, and in which order blocks take them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace attention_sm90 {

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

struct Arguments {
  CUtensorMap q, k, v;
  struct {
    void* data;
    int64_t row, head, batch;  // strides, in elements
  } o;
  int batch, heads, heads_per_key;  // so many heads of Q share one of K and V
  int rows, keys;                   // of each head: of Q and O, of K and V
  int together;                     // heads that are computed beside each other
  float scale;                      // of the scores, times log2(e)
  float* logarithms;                // [batch][head][row]: of the sums of exponentials; or null
  int* next;                        // 0; counts the tiles that have been given to blocks beyond the first of each
};

// Tiles of O of so many rows, which see blocks of so many keys.
template <bool causal, int tile_rows, int block_keys>
struct Tiles {
  struct Place {
    int row, head, batch;  // the row may be negative: rows before the first do not exist
    int blocks;            // of keys that its rows see, at least 1
  };

  const Arguments& arguments;
  int of_head = ceil_div(arguments.rows, tile_rows), heads = arguments.heads * arguments.batch, count = of_head * heads;

  // The keys that a row sees.
  __device__ __forceinline__ int seen(int row) const {
    return causal ? min(arguments.keys, row + 1 + arguments.keys - arguments.rows) : arguments.keys;
  }

  // Blocks of keys that the rows up to this one see, at least 1.
  __device__ __forceinline__ int blocks(int row) const { return max(1, ceil_div(seen(row), block_keys)); }

  // Some heads are computed beside each other, so that their K and V stay in L2. Of these the tiles that see most keys come first: the
  // short ones fill the gaps at the end. Tiles are counted from the last row, so that the one that has fewer rows sees fewest keys.
  __device__ __forceinline__ Place place(int number) const {
    const int group = number / (arguments.together * of_head), first = group * arguments.together;
    const int beside = min(arguments.together, heads - first), rest = number - first * of_head;
    const int head = first + rest % beside, row = arguments.rows - (rest / beside + 1) * tile_rows;
    return {row, head % arguments.heads, head / arguments.heads, blocks(row + tile_rows - 1)};
  }
};

}  // namespace attention_sm90
