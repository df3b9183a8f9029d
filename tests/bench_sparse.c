/*
 * How fast sparse.h compresses a 16-bit matrix on one core, beside memcpy: medians in 10^9 bytes
 * of input per second, and the median of the rounds' own ratios.
 *
 *     gcc -O3 -march=native -I generated/include tests/bench_sparse.c -o bench_sparse && ./bench_sparse [rows [cols [rounds]]]
 *
 * Prints one line of JSON.
 */
#define _POSIX_C_SOURCE 200809L
#include <ptxmma/sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_ROUNDS 99

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, size_t count) {
  qsort(times, count, sizeof *times, ascending);
  return times[count / 2];
}

/* Random chunks of four with two elements that are not zero. */
static void fill(uint16_t *matrix, size_t elements) {
  static const uint8_t sets[] = {3, 5, 6, 9, 10, 12};
  uint32_t state = 1;
  for (size_t chunk = 0; chunk < elements / 4; chunk++) {
    state = state * 1664525u + 1013904223u;
    const unsigned set = sets[(state >> 24) % 6];
    for (size_t i = 0; i < 4; i++)
      matrix[4 * chunk + i] = (set >> i) & 1 ? (uint16_t)((state >> 7) & 0x3fff) + 1 : 0;
  }
}

int main(int count, char **arguments) {
  const size_t rows = count > 1 ? strtoull(arguments[1], NULL, 10) : 16384;
  const size_t cols = count > 2 ? strtoull(arguments[2], NULL, 10) : 16384;
  const size_t rounds = count > 3 ? strtoull(arguments[3], NULL, 10) : 5;
  const size_t bytes = 2 * rows * cols;
  uint16_t *matrix = malloc(bytes), *copy = malloc(bytes), *values = malloc(bytes / 2);
  uint8_t *metadata = malloc(bytes / 16);
  double times[4][MOST_ROUNDS];
  if (!matrix || !copy || !values || !metadata || rounds == 0 || rounds > MOST_ROUNDS) return 1;
  fill(matrix, rows * cols);
  memset(copy, 1, bytes); /* the first touch of a page is no part of a copy */
  memset(values, 1, bytes / 2);
  memset(metadata, 1, bytes / 16);
  for (size_t round = 0; round < rounds; round++) {
    double start = now();
    memcpy(copy, matrix, bytes);
    times[0][round] = now() - start;
    if (copy[bytes / 2 - 1] != matrix[bytes / 2 - 1]) return 1; /* nor may the compiler leave it out */
    start = now();
    if (ptxmma_sparse_2_4_f16_check(rows, cols, matrix, cols, NULL) != PTXMMA_OK) return 1;
    times[1][round] = now() - start;
    start = now();
    if (ptxmma_sparse_2_4_f16_compress(rows, cols, matrix, cols, values, cols / 2, metadata, cols / 8, NULL) != PTXMMA_OK) return 1;
    times[2][round] = now() - start;
    start = now();
    if (ptxmma_sparse_2_4_f16_decompress(rows, cols, values, cols / 2, metadata, cols / 8, copy, cols, NULL) != PTXMMA_OK) return 1;
    times[3][round] = now() - start;
    if (memcmp(copy, matrix, bytes) != 0) return 1;
  }
  double ratios[MOST_ROUNDS], rates[4];
  for (size_t round = 0; round < rounds; round++) ratios[round] = times[0][round] / times[2][round];
  for (size_t i = 0; i < 4; i++) rates[i] = 1e-9 * (double)bytes / median(times[i], rounds);
  printf(
      "{\"rows\": %zu, \"cols\": %zu, \"memcpy\": %.2f, \"check\": %.2f, \"compress\": %.2f, \"decompress\": %.2f, \"compress/memcpy\": %.2f}\n",
      rows, cols, rates[0], rates[1], rates[2], rates[3], median(ratios, rounds));
  return 0;
}
