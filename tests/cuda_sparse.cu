// Device compression against the host's, for several types, sizes and arrangements of metadata, and its bandwidth beside a copy's.
//
//     nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -I generated/include tests/cuda_sparse.cu -o cuda_sparse
//     ./cuda_sparse [rows and columns of the timed matrix]
//
// Prints one line of JSON; the exit status is not zero if anything differs.
#include <ptxmma/cuda/sparse.cuh>
#include <ptxmma/mma_sp_pack.h>
#include <ptxmma/wgmma_sp_pack.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace ptxmma::sparse;
typedef std::vector<unsigned char> bytes;
typedef ptxmma_status pack_function(size_t, size_t, const uint8_t*, size_t, uint32_t, uint32_t*);

static int failures = 0, cases = 0;

static void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

static void expect(bool holds, const char* what, const char* kind, size_t rows, size_t cols) {
  ++cases;
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s differs: %s, %zu x %zu\n", what, kind, rows, cols);
}

// Memory of the device with `guard` bytes around it that nobody may write.
struct buffer {
  static constexpr size_t guard = 256;
  size_t size;
  unsigned char* base = nullptr;

  explicit buffer(size_t size_) : size(size_) {
    must(cudaMalloc(&base, size + 2 * guard), "cudaMalloc");
    must(cudaMemset(base, 0xa5, size + 2 * guard), "cudaMemset");
  }
  buffer(const buffer&) = delete;
  ~buffer() { cudaFree(base); }
  unsigned char* data() const { return base + guard; }
  void put(const bytes& from) const { must(cudaMemcpy(data(), from.data(), from.size(), cudaMemcpyHostToDevice), "to the device"); }
  bytes get() const {
    bytes to(size);
    must(cudaMemcpy(to.data(), data(), size, cudaMemcpyDeviceToHost), "from the device");
    return to;
  }
  bool whole() const {
    bytes all(size + 2 * guard);
    must(cudaMemcpy(all.data(), base, all.size(), cudaMemcpyDeviceToHost), "from the device");
    for (size_t i = 0; i < guard; ++i)
      if (all[i] != 0xa5 || all[guard + size + i] != 0xa5) return false;
    return true;
  }
};

// A matrix of random bits (without infinities and NaNs) that is sparse enough: pruned, with more zeros here and there.
template <class Kind>
static bytes random_matrix(std::mt19937& random, size_t rows, size_t cols, size_t stride) {
  const ptxmma_sparse_kind kind = Kind::kind();
  bytes matrix(rows * stride * Kind::element_bits / 8);
  for (auto& byte : matrix) byte = random() % 3 == 0 ? 0 : (unsigned char)(random() & 0x37);
  if (ptxmma_sparse_prune(&kind, rows, cols, matrix.data(), stride, matrix.data(), stride, nullptr) != PTXMMA_OK) std::exit(3);
  return matrix;
}

template <class Kind, class Layout>
static void compare(const char* name, std::mt19937& random, pack_function* pack, size_t tile_rows, size_t tiles) {
  const ptxmma_sparse_kind kind = Kind::kind();
  const size_t rows = tile_rows * Layout::rows, chunks = tiles * Layout::chunks, cols = chunks * Kind::chunk_elements;
  const size_t bits = Kind::element_bits, kept = cols / 2, pad = 256 / bits;
  const size_t store = Layout::run * Kind::chunk_bytes == 32 ? 16 : 8;  // bytes of values that are stored at once
  const size_t stride = cols + pad * (random() % 3), values_stride = kept + 8 * store / bits * (random() % 4);
  const size_t metadata_stride = (chunks / 2 + 3) / 4 * 4 + 4 * (random() % 3);
  bytes matrix = random_matrix<Kind>(random, rows, cols, stride);

  bytes values(rows * values_stride * bits / 8, 0xa5), metadata(rows * metadata_stride, 0xa5);
  if (ptxmma_sparse_compress(&kind, rows, cols, matrix.data(), stride, values.data(), values_stride, metadata.data(), metadata_stride, nullptr)
      != PTXMMA_OK) std::exit(3);
  std::vector<uint32_t> registers(registers_for<Layout>(rows, cols));
  if (pack(rows, chunks, metadata.data(), metadata_stride, PTXMMA_ALL_SELECTORS, registers.data()) != PTXMMA_OK) std::exit(3);

  buffer from(matrix.size()), to(values.size()), fields(metadata.size()), words(4 * registers.size()), fault(sizeof(fault_word));
  fault_word* note = reinterpret_cast<fault_word*>(fault.data());
  fault_word noted = 0;
  from.put(matrix);
  must(compress<Kind>(rows, cols, from.data(), stride, to.data(), values_stride, fields.data(), metadata_stride, note), "compress");
  must(cudaMemcpy(&noted, note, sizeof noted, cudaMemcpyDeviceToHost), "fault");
  expect(noted == no_fault, "fault", name, rows, cols);
  expect(to.get() == values && to.whole(), "values", name, rows, cols);
  expect(fields.get() == metadata && fields.whole(), "metadata", name, rows, cols);

  must(cudaMemset(to.data(), 0xa5, to.size), "cudaMemset");
  uint32_t* const held = reinterpret_cast<uint32_t*>(words.data());
  must(compress<Kind, Layout>(rows, cols, from.data(), stride, to.data(), values_stride, held, note), "compress into registers");
  const bytes got = words.get();
  expect(to.get() == values && to.whole(), "values beside registers", name, rows, cols);
  expect(std::equal(got.begin(), got.end(), reinterpret_cast<unsigned char*>(registers.data())) && words.whole(), "registers", name, rows, cols);

  // Two chunks that are too full: the first is reported.
  ptxmma_sparse_place place = {};
  for (int i = 0; i < 2; ++i) {
    const size_t row = random() % rows, chunk = random() % chunks;
    for (int j = 0; j < Kind::chunk_bytes; ++j) matrix[row * stride * bits / 8 + chunk * Kind::chunk_bytes + j] = 0x11;
  }
  from.put(matrix);
  if (ptxmma_sparse_check(&kind, rows, cols, matrix.data(), stride, &place) != PTXMMA_ERROR_NOT_SPARSE) std::exit(3);
  must(compress<Kind>(rows, cols, from.data(), stride, to.data(), values_stride, fields.data(), metadata_stride, note), "compress");
  must(cudaMemcpy(&noted, note, sizeof noted, cudaMemcpyDeviceToHost), "fault");
  expect(noted == place.row * chunks + place.chunk, "place of the fault", name, rows, cols);
  must(compress<Kind, Layout>(rows, cols, from.data(), stride, to.data(), values_stride, held, note), "compress into registers");
  must(cudaMemcpy(&noted, note, sizeof noted, cudaMemcpyDeviceToHost), "fault");
  expect(noted == place.row * chunks + place.chunk, "place of the fault beside registers", name, rows, cols);

  // Arguments that cannot be.
  expect(compress<Kind>(rows, cols - 1, from.data(), stride, to.data(), values_stride, fields.data(), metadata_stride, note) ==
             cudaErrorInvalidValue, "odd size", name, rows, cols);
  expect(compress<Kind>(rows, cols, from.data() + 4, stride, to.data(), values_stride, fields.data(), metadata_stride, note) ==
             cudaErrorMisalignedAddress, "misaligned matrix", name, rows, cols);
  expect(compress<Kind>(rows, cols, nullptr, stride, to.data(), values_stride, fields.data(), metadata_stride, note) ==
             cudaErrorInvalidValue, "null", name, rows, cols);
}

// Rows of values that end with half a vector, and one row whose strides do not matter; no metadata in registers.
template <class Kind>
static void compare_narrow(const char* name, std::mt19937& random, size_t rows, size_t vectors) {
  const ptxmma_sparse_kind kind = Kind::kind();
  const size_t bits = Kind::element_bits, cols = vectors * 128 / bits, chunks = cols / Kind::chunk_elements, kept = cols / 2;
  const size_t fields = 16 / Kind::chunk_bytes / 2, odd = rows == 1 ? 1 : 0;
  const size_t metadata_stride = chunks / 2 + odd, stride = cols + odd * (8 / bits + 1), values_stride = kept + odd * (8 / bits + 1);
  bytes matrix = random_matrix<Kind>(random, rows, cols, cols), values(rows * kept * bits / 8), metadata(rows * chunks / 2);
  if (ptxmma_sparse_compress(&kind, rows, cols, matrix.data(), cols, values.data(), kept, metadata.data(), chunks / 2, nullptr) != PTXMMA_OK)
    std::exit(3);
  buffer from(matrix.size()), to(values.size() + 8), noted(metadata.size() + fields);
  from.put(matrix);
  must(compress<Kind>(rows, cols, from.data(), stride, to.data() + 8, values_stride, noted.data() + fields, metadata_stride, nullptr), "compress");
  const bytes got = to.get(), got_fields = noted.get();
  expect(std::equal(values.begin(), values.end(), got.begin() + 8) && to.whole(), "narrow values", name, rows, cols);
  expect(std::equal(metadata.begin(), metadata.end(), got_fields.begin() + fields) && noted.whole(), "narrow metadata", name, rows, cols);
}

template <class Kind, class Layout>
static void compare(const char* name, std::mt19937& random, pack_function* pack) {
  for (size_t vectors : {1, 3, 17}) compare_narrow<Kind>(name, random, 4, vectors), compare_narrow<Kind>(name, random, 1, vectors);
  for (int round = 0; round < 4; ++round) compare<Kind, Layout>(name, random, pack, 1 + random() % 5, 1 + random() % 80);
  compare<Kind, Layout>(name, random, pack, 1, 1);
}

__global__ void fill(uint2* chunks, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    chunks[i] = i % 3 == 0 ? make_uint2(0x3c003c00, 0) : i % 3 == 1 ? make_uint2(0x3c000000, 0x00003c00) : make_uint2(0, 0x3c003c00);
}

// Median seconds of a call.
template <class Call>
static double seconds(Call call) {
  cudaEvent_t start, stop;
  must(cudaEventCreate(&start), "event");
  must(cudaEventCreate(&stop), "event");
  std::vector<double> times;
  for (int i = 0; i < 23; ++i) {
    must(cudaEventRecord(start), "event");
    call();
    must(cudaEventRecord(stop), "event");
    must(cudaEventSynchronize(stop), "timed call");
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start, stop), "event");
    if (i >= 3) times.push_back(1e-3 * milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int count, char** arguments) {
  std::mt19937 random(1);
#define COMPARE(kind, layout) compare<kind, layout>(#kind " " #layout, random, ptxmma_##layout##_pack_tiles)
  COMPARE(kind_2_4_f16, mma_sp_m16n8k16_metadata_b16);
  COMPARE(kind_2_4_f16, mma_sp_m16n8k32_metadata_b16);
  COMPARE(kind_2_4_bf16, wgmma_sp_m64nNk32_metadata_b16);
  COMPARE(kind_1_2_tf32, mma_sp_m16n8k8_metadata_b32);
  COMPARE(kind_1_2_tf32, mma_sp_m16n8k16_metadata_b32);
  COMPARE(kind_1_2_tf32, wgmma_sp_m64nNk16_metadata_b32);
  COMPARE(kind_2_4_s8, mma_sp_m16n8k32_metadata_b8);
  COMPARE(kind_2_4_e4m3, mma_sp_m16n8k64_metadata_b8);
  COMPARE(kind_2_4_u8, wgmma_sp_m64nNk64_metadata_b8);
  COMPARE(kind_2_4_e2m3, mma_sp_m16n8k64_metadata_b8);
  COMPARE(kind_2_4_e2m1, mma_sp_m16n8k64_metadata_b8);
  COMPARE(kind_4_8_s4, mma_sp_m16n8k64_metadata_b4);
  COMPARE(kind_4_8_u4, mma_sp_m16n8k128_metadata_b4);
  COMPARE(kind_4_8_e2m1, mma_sp_m16n8k128_metadata_b4);

  // An error of an earlier call, which nobody looked at, is neither returned nor cleared.
  expect(cudaMemcpy(&random, &random, 8, static_cast<cudaMemcpyKind>(77)) != cudaSuccess, "earlier error", "", 0, 0);
  compare_narrow<kind_2_4_f16>("beside an earlier error", random, 4, 3);
  expect(cudaGetLastError() == cudaErrorInvalidMemcpyDirection, "earlier error, still there", "", 0, 0);

  const size_t size = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 16384, total = 2 * size * size;
  double copy = 0, rows = 0, registers = 0;
  {
    buffer matrix(total), other(total), metadata(total / 16), fault(sizeof(fault_word));
    fault_word* const note = reinterpret_cast<fault_word*>(fault.data());
    fill<<<4096, 256>>>(reinterpret_cast<uint2*>(matrix.data()), total / 8);
    must(cudaDeviceSynchronize(), "fill");
    copy = seconds([&] { must(cudaMemcpyAsync(other.data(), matrix.data(), total, cudaMemcpyDeviceToDevice), "copy"); });
    rows = seconds([&] {
      must(compress<kind_2_4_f16>(size, size, matrix.data(), size, other.data(), size / 2, metadata.data(), size / 8, note), "compress");
    });
    uint32_t* const words = reinterpret_cast<uint32_t*>(metadata.data());
    registers = seconds([&] {
      must(compress<kind_2_4_f16, mma_sp_m16n8k32_metadata_b16>(size, size, matrix.data(), size, other.data(), size / 2, words, note), "compress");
    });
    fault_word noted = 0;
    must(cudaMemcpy(&noted, note, sizeof noted, cudaMemcpyDeviceToHost), "fault");
    expect(noted == no_fault, "timed matrix", "kind_2_4_f16", size, size);
  }
  const double copied = 2.0 * total, moved = total * (1 + 0.5 + 1.0 / 16), giga = 1e-9;
  std::printf(
      "{\"cases\": %d, \"failures\": %d, \"size\": %zu, \"copy GB/s\": %.1f, \"row-major GB/s\": %.1f, \"registers GB/s\": %.1f, "
      "\"row-major/copy\": %.3f, \"registers/copy\": %.3f}\n",
      cases, failures, size, giga * copied / copy, giga * moved / rows, giga * moved / registers, moved / rows / (copied / copy),
      moved / registers / (copied / copy));
  return failures == 0 ? 0 : 1;
}
