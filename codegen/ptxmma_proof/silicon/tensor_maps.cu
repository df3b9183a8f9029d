// The driver's verdicts on tensor maps, and what copies with them move: `tensor_maps CASES RESULTS`.
//
// A copy is made four times, each time with another byte of the number of each source byte, so that the result says where its bytes came from.
// A line of the results: the driver's verdict, the outcome, and runs of bytes as destination, source and length. A copy that traps ends its
// process; another one goes on with the next case.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cp_async_bulk/cp_async_bulk.cuh>
#include <ptxmma/cp_async_bulk_tensor/cp_async_bulk_tensor.cuh>
#include <ptxmma/fence.cuh>
#include <ptxmma/mbarrier.cuh>

// All members are numbers of the driver; tensor_map_chip.py writes them in this order.
struct Case {
  int64_t im2col, type, rank, shape[5], strides[4], box[5], element_strides[5], interleave, swizzle, fill, address, lower[3], upper[3],
      channels, pixels, copy, bytes, at[5], offsets[3], destination;
};

enum Copy { NONE, LOAD, STORE };
// Outcomes of a copy beside 0 and the error of a trap: the mbarrier waits for more bytes, or has counted more.
enum Outcome { TOO_MANY_EXPECTED = -1, TOO_FEW_EXPECTED = -2 };

constexpr int IMAGE = 64 << 10, TENSOR = 4 << 20, PASSES = 4;
constexpr uint32_t NUMBERED = 0x40000000, UNTOUCHED = 0xEEEEEEEE;
constexpr int64_t FOUND_ZERO = -1, FOUND_NAN = -2;
constexpr long long PATIENCE = 8000000, PAUSE = 50000;  // clocks

__device__ unsigned char byte_of(uint32_t number, int pass) { return static_cast<unsigned char>((NUMBERED + number) >> (8 * pass)); }

template <int rank>
__device__ void load(const CUtensorMap* map, const Case& c, unsigned char* to, uint64_t* barrier) {
  int32_t at[rank];
  for (int i = 0; i < rank; ++i) at[i] = static_cast<int32_t>(c.at[i]);
  using namespace ptxmma;
  if constexpr (rank >= 3) {
    uint16_t offsets[rank - 2];
    for (int i = 0; i < rank - 2; ++i) offsets[i] = static_cast<uint16_t>(c.offsets[i]);
    if (c.im2col) {
      if constexpr (rank == 3) cp_async_bulk_tensor_3d_shared_cluster_global_im2col(to, map, at, barrier, offsets);
      if constexpr (rank == 4) cp_async_bulk_tensor_4d_shared_cluster_global_im2col(to, map, at, barrier, offsets);
      if constexpr (rank == 5) cp_async_bulk_tensor_5d_shared_cluster_global_im2col(to, map, at, barrier, offsets);
      return;
    }
  }
  if constexpr (rank == 1) cp_async_bulk_tensor_1d_shared_cluster_global(to, map, at, barrier);
  if constexpr (rank == 2) cp_async_bulk_tensor_2d_shared_cluster_global(to, map, at, barrier);
  if constexpr (rank == 3) cp_async_bulk_tensor_3d_shared_cluster_global(to, map, at, barrier);
  if constexpr (rank == 4) cp_async_bulk_tensor_4d_shared_cluster_global(to, map, at, barrier);
  if constexpr (rank == 5) cp_async_bulk_tensor_5d_shared_cluster_global(to, map, at, barrier);
}

template <int rank>
__device__ void store(const CUtensorMap* map, const Case& c, const unsigned char* from) {
  int32_t at[rank];
  for (int i = 0; i < rank; ++i) at[i] = static_cast<int32_t>(c.at[i]);
  using namespace ptxmma;
  if constexpr (rank >= 3) {
    if (c.im2col) {
      if constexpr (rank == 3) cp_async_bulk_tensor_3d_global_shared_cta_im2col_no_offs_bulk_group(map, at, from);
      if constexpr (rank == 4) cp_async_bulk_tensor_4d_global_shared_cta_im2col_no_offs_bulk_group(map, at, from);
      if constexpr (rank == 5) cp_async_bulk_tensor_5d_global_shared_cta_im2col_no_offs_bulk_group(map, at, from);
      return;
    }
  }
  if constexpr (rank == 1) cp_async_bulk_tensor_1d_global_shared_cta_bulk_group(map, at, from);
  if constexpr (rank == 2) cp_async_bulk_tensor_2d_global_shared_cta_bulk_group(map, at, from);
  if constexpr (rank == 3) cp_async_bulk_tensor_3d_global_shared_cta_bulk_group(map, at, from);
  if constexpr (rank == 4) cp_async_bulk_tensor_4d_global_shared_cta_bulk_group(map, at, from);
  if constexpr (rank == 5) cp_async_bulk_tensor_5d_global_shared_cta_bulk_group(map, at, from);
}

// The start of an image that lies at shared address 0 modulo the longest pattern of a swizzle.
__device__ unsigned char* image_in(unsigned char* memory) {
  return memory + (1024 - static_cast<uint32_t>(__cvta_generic_to_shared(memory)) % 1024) % 1024;
}

template <int rank>
__global__ void measure_load(const __grid_constant__ CUtensorMap map, const __grid_constant__ Case c, unsigned char* out, int* outcome) {
  extern __shared__ unsigned char memory[];
  __shared__ uint64_t counted, plain;
  unsigned char* image = image_in(memory);
  for (int i = threadIdx.x; i < IMAGE; i += blockDim.x) image[i] = static_cast<unsigned char>(UNTOUCHED);
  if (threadIdx.x == 0) {
    ptxmma::mbarrier_init(&counted, 1);
    ptxmma::mbarrier_init(&plain, 1);
  }
  ptxmma::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    uint64_t state;
    uint32_t done = 0;
    ptxmma::mbarrier_arrive_expect_tx(state, &counted, static_cast<uint32_t>(c.bytes));
    load<rank>(&map, c, image + c.destination, &counted);
    for (const long long start = clock64(); !done && clock64() - start < PATIENCE;) ptxmma::mbarrier_try_wait_parity(done, &counted, 0);
    for (const long long start = clock64(); clock64() - start < PAUSE;) {
    }
    // A barrier that counted all bytes that it expected is in the state of one that never expected any.
    ptxmma::mbarrier_arrive(state, &plain);
    const bool exact = *static_cast<volatile uint64_t*>(&counted) == *static_cast<volatile uint64_t*>(&plain);
    *outcome = !done ? TOO_MANY_EXPECTED : exact ? 0 : TOO_FEW_EXPECTED;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < IMAGE; i += blockDim.x) out[i] = image[i];
}

template <int rank>
__global__ void measure_store(const __grid_constant__ CUtensorMap map, const __grid_constant__ Case c, int pass, int* outcome) {
  extern __shared__ unsigned char memory[];
  unsigned char* image = image_in(memory);
  for (int i = threadIdx.x; i < IMAGE; i += blockDim.x) image[i] = byte_of(i, pass);
  ptxmma::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store<rank>(&map, c, image + c.destination);
    ptxmma::cp_async_bulk_commit_group();
    ptxmma::cp_async_bulk_wait_group<0>();
    *outcome = 0;
  }
}

__global__ void number(unsigned char* tensor, int pass) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < TENSOR; i += gridDim.x * blockDim.x) tensor[i] = byte_of(i, pass);
}

#define OK(call)                                                               \
  do {                                                                         \
    const auto status_ = (call);                                               \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "%s: error %d\n", #call, static_cast<int>(status_));     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

template <class Function>
Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult support;
  OK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &support));
  return reinterpret_cast<Function>(found);
}

CUresult encode(CUtensorMap& map, const Case& c, unsigned char* tensor) {
  static const auto tiled = driver<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  static const auto im2col = driver<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  cuuint64_t shape[5], strides[4];
  cuuint32_t box[5], steps[5];
  int lower[3], upper[3];
  for (int i = 0; i < 5; ++i) shape[i] = c.shape[i], box[i] = c.box[i], steps[i] = c.element_strides[i];
  for (int i = 0; i < 4; ++i) strides[i] = c.strides[i];
  for (int i = 0; i < 3; ++i) lower[i] = c.lower[i], upper[i] = c.upper[i];
  const auto type = static_cast<CUtensorMapDataType>(c.type);
  const auto interleave = static_cast<CUtensorMapInterleave>(c.interleave);
  const auto swizzle = static_cast<CUtensorMapSwizzle>(c.swizzle);
  const auto fill = static_cast<CUtensorMapFloatOOBfill>(c.fill);
  void* start = tensor + c.address;
  if (c.im2col) {
    return im2col(&map, type, c.rank, start, shape, strides, lower, upper, c.channels, c.pixels, steps, interleave, swizzle,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  }
  return tiled(&map, type, c.rank, start, shape, strides, box, steps, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
}

template <int rank>
void launch(const CUtensorMap& map, const Case& c, int pass, unsigned char* image, int* outcome) {
  const int shared = IMAGE + 1024;
  if (c.copy == LOAD) {
    OK(cudaFuncSetAttribute(measure_load<rank>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    measure_load<rank><<<1, 256, shared>>>(map, c, image, outcome);
  } else {
    OK(cudaFuncSetAttribute(measure_store<rank>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    measure_store<rank><<<1, 256, shared>>>(map, c, pass, outcome);
  }
}

// The number of the source byte that a byte came from, or why it has none.
int64_t source_of(uint32_t seen) {
  const uint32_t byte = seen & 0xFF;
  if (seen == 0) return FOUND_ZERO;
  if (seen == byte * 0x01010101 && (byte == 0xF7 || byte == 0x7F)) return FOUND_NAN;
  return seen - NUMBERED;
}

void print_runs(FILE* results, const std::vector<uint32_t>& seen, int64_t destination_zero, int64_t source_zero) {
  for (size_t i = 0; i < seen.size();) {
    if (seen[i] == UNTOUCHED) {
      ++i;
      continue;
    }
    const int64_t source = source_of(seen[i]);
    size_t end = i + 1;
    while (end < seen.size() && seen[end] != UNTOUCHED && source_of(seen[end]) == (source < 0 ? source : source + int64_t(end - i))) ++end;
    fprintf(results, " %lld %lld %zu", (long long)(i - destination_zero), (long long)(source < 0 ? source : source - source_zero), end - i);
    i = end;
  }
}

// Runs the cases from `first` on until one traps.
void run(const std::vector<Case>& cases, size_t first, FILE* results) {
  unsigned char *tensors[PASSES], *target, *image;
  int* outcome;
  for (int pass = 0; pass < PASSES; ++pass) {
    OK(cudaMalloc(&tensors[pass], TENSOR));
    number<<<256, 256>>>(tensors[pass], pass);
  }
  OK(cudaMalloc(&target, TENSOR));
  OK(cudaMalloc(&image, IMAGE));
  OK(cudaMalloc(&outcome, sizeof *outcome));
  for (size_t number = first; number < cases.size(); ++number) {
    const Case& c = cases[number];
    const bool loads = c.copy == LOAD;
    CUtensorMap map;
    const CUresult verdict = encode(map, c, tensors[0]);
    fprintf(results, "%d", static_cast<int>(verdict));
    if (verdict == CUDA_SUCCESS && c.copy != NONE) {
      const int length = loads ? IMAGE : TENSOR / 4;  // tensors of stores are small
      std::vector<uint32_t> seen(length);
      std::vector<unsigned char> bytes(length);
      cudaError_t trap = cudaSuccess;
      int worst = 0;
      for (int pass = 0; pass < PASSES && trap == cudaSuccess; ++pass) {
        encode(map, c, loads ? tensors[pass] : target);
        if (!loads) OK(cudaMemset(target, UNTOUCHED & 0xFF, length));
        if (c.rank == 1) launch<1>(map, c, pass, image, outcome);
        if (c.rank == 2) launch<2>(map, c, pass, image, outcome);
        if (c.rank == 3) launch<3>(map, c, pass, image, outcome);
        if (c.rank == 4) launch<4>(map, c, pass, image, outcome);
        if (c.rank == 5) launch<5>(map, c, pass, image, outcome);
        trap = cudaDeviceSynchronize();
        if (trap != cudaSuccess) break;
        int last = 0;
        OK(cudaMemcpy(&last, outcome, sizeof last, cudaMemcpyDeviceToHost));
        if (last != 0) worst = last;
        OK(cudaMemcpy(bytes.data(), loads ? image : target, length, cudaMemcpyDeviceToHost));
        for (int i = 0; i < length; ++i) seen[i] |= uint32_t{bytes[i]} << (8 * pass);
      }
      if (trap != cudaSuccess) {
        fprintf(results, " %d\n", static_cast<int>(trap));
        return;
      }
      fprintf(results, " %d", worst);
      print_runs(results, seen, loads ? 0 : c.address, loads ? c.address : 0);
    }
    fputc('\n', results);
  }
}

size_t lines_of(const char* path) {
  FILE* file = fopen(path, "r");
  size_t lines = 0;
  for (int c; file != nullptr && (c = fgetc(file)) != EOF;) lines += c == '\n';
  if (file != nullptr) fclose(file);
  return lines;
}

int main(int, char** arguments) {
  std::vector<Case> cases;
  FILE* in = fopen(arguments[1], "rb");
  for (Case c; in != nullptr && fread(&c, sizeof c, 1, in) == 1;) cases.push_back(c);
  fclose(fopen(arguments[2], "w"));
  for (size_t done = 0, before; done < cases.size();) {
    if (fork() == 0) {
      FILE* results = fopen(arguments[2], "a");
      run(cases, done, results);
      fclose(results);
      _exit(0);
    }
    int status = 0;
    wait(&status);
    before = done;
    done = lines_of(arguments[2]);
    if (status != 0 || done == before) return 1;
  }
  return 0;
}
