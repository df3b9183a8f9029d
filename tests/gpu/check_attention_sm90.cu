// Holds attention_sm90 against attention in float64: both types, causal and not, random lengths with ragged ones, shared heads of K and V,
// pitches wider than the rows. Where the scores of all keys but one are so low that their weights vanish, O has to be a row of V, bit for
// bit; random numbers have to come out within a bound.
//
// The argument is the number of shapes for each type, causal and not.
#include <random>
#include <type_traits>

#include "attention_sm90_plan.cuh"
#include "numbers.cuh"

using attention_sm90::Tensor;

// Codes of rows: -8 or 8 for each bit of a number, again and again. The scores of equal codes are highest.
template <class T>
__global__ void fill_codes(Tensor<T> tensor, int rows, int heads, int batch, const int* codes, int bits) {
  const int row = blockIdx.x, head = blockIdx.y, element = threadIdx.x;
  for (int i = 0; i < batch; ++i) {
    tensor.data[row * tensor.row + head * tensor.head + i * tensor.batch + element] = T(codes[row] >> element % bits & 1 ? 8.f : -8.f);
  }
}

struct Expected {
  double value, magnitude, error;  // of an element of O; the same of the magnitudes of V; relative error of the weights
};

// One row of O for each block.
template <int HEAD, class T>
__global__ void reference(int rows, int keys, int heads_per_key, bool causal, double scale, Tensor<const T> q, Tensor<const T> k,
                          Tensor<const T> v, Expected* expected, double* logarithms) {
  extern __shared__ double weights[];
  __shared__ double highest, largest_product;
  const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, element = threadIdx.x;
  const int seen = causal ? min(keys, row + 1 + keys - rows) : keys;
  const T* of_q = q.data + row * q.row + head * q.head + batch * q.batch;
  const T* of_k = k.data + head / heads_per_key * k.head + batch * k.batch;
  const T* of_v = v.data + head / heads_per_key * v.head + batch * v.batch;
  __shared__ double products[HEAD];
  double product = 0;
  for (int key = threadIdx.x; key < seen; key += blockDim.x) {
    double score = 0, terms = 0;
    for (int i = 0; i < HEAD; ++i) {
      const double x = double(float(of_q[i])) * double(float(of_k[key * k.row + i]));
      score += x;
      terms += fabs(x);
    }
    weights[key] = scale * score;
    product = fmax(product, terms);
  }
  products[threadIdx.x] = product;
  __syncthreads();
  if (threadIdx.x == 0) {
    highest = -INFINITY;
    largest_product = 0;
    for (int key = 0; key < seen; ++key) highest = fmax(highest, weights[key]);
    for (double one : products) largest_product = fmax(largest_product, one);
  }
  __syncthreads();
  double total = 0, sum = 0, magnitude = 0;
  for (int key = 0; key < seen; ++key) {
    const double weight = exp(weights[key] - highest), x = double(float(of_v[key * v.row + element]));
    total += weight;
    sum += weight * x;
    magnitude += weight * fabs(x);
  }
  // An instruction sums 16 products and the accumulator after cutting each off, relative to the largest, below 2^-23. The score is
  // multiplied by the scale and reduced by the highest in one operation, the highest having been rounded; 2^x is good to 2^-22.
  const double score_error = scale * largest_product * (HEAD / 16 * 17 * 0x1p-23 + 0x1p-22) + 0x1p-22;
  const bool none = seen <= 0;
  if (element == 0) logarithms[(size_t(batch) * gridDim.y + head) * rows + row] = none ? -INFINITY : highest + log(total);
  expected[((size_t(batch) * gridDim.y + head) * rows + row) * HEAD + element] = {
      none ? 0 : sum / total, none ? 0 : magnitude / total, 2 * score_error};
}

// Half a unit in the last place, as a fraction, and the same of the smallest numbers.
template <class T> constexpr double ROUNDING = std::is_same_v<T, __half> ? 0x1p-11 : 0x1p-8;
template <class T> constexpr double SMALLEST = std::is_same_v<T, __half> ? 0x1p-25 : 0x1p-133;

template <class Element, bool causal, int HEAD>
bool check(int batch, int key_heads, int heads_per_key, int rows, int keys, int padding, bool row_outside, bool exact, uint32_t seed) {
  using T = ptxmma::storage<Element>;
  const int heads = key_heads * heads_per_key;
  const auto strides = [&](int count, int all) {  // of [batch][row][head], or of [batch][head][row]
    const int64_t pitch = HEAD + 8 * padding;
    return row_outside ? Tensor<T>{nullptr, all * pitch, pitch, count * all * pitch} : Tensor<T>{nullptr, pitch, count * pitch, count * all * pitch};
  };
  Tensor<T> q = strides(rows, heads), o = q, k = strides(keys, key_heads), v = k;
  DeviceArray<T> data_q(batch * q.batch), data_o(batch * o.batch), data_k(batch * k.batch), data_v(batch * v.batch);
  q.data = data_q.data, o.data = data_o.data, k.data = data_k.data, v.data = data_v.data;
  fill_normal<<<256, 256>>>(q.data, data_q.size, seed);
  fill_normal<<<256, 256>>>(k.data, data_k.size, seed + 1);
  fill_normal<<<256, 256>>>(v.data, data_v.size, seed + 2);
  fill_integers<<<256, 256>>>(o.data, data_o.size, seed + 3, 3);
  const std::vector<T> before = data_o.host();

  std::mt19937 random(seed);
  std::vector<int> targets(rows), numbers(keys);
  for (int i = 0; i < keys; ++i) numbers[i] = i;
  for (int i = 0; i < rows; ++i) {
    const int seen = causal ? std::min(keys, i + 1 + keys - rows) : keys;
    targets[i] = seen > 0 ? std::uniform_int_distribution<int>(0, seen - 1)(random) : -1;
  }
  DeviceArray<int> device_targets(rows), device_numbers(keys), counter(1);
  DeviceArray<float> logarithms(size_t(batch) * heads * rows);
  DeviceArray<double> expected_logarithms(logarithms.size);
  CHECK(cudaMemset(logarithms.data, 0xff, logarithms.size * sizeof(float)));
  CHECK(cudaMemcpy(device_targets.data, targets.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_numbers.data, numbers.data(), keys * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(counter.data, 0, sizeof(int)));
  if (exact) {
    fill_codes<<<dim3(rows, heads), HEAD>>>(q, rows, heads, batch, device_targets.data, 10);
    fill_codes<<<dim3(keys, key_heads), HEAD>>>(k, keys, key_heads, batch, device_numbers.data, 10);
  }

  const float scale = 1 / std::sqrt(float(HEAD));
  const auto input = [](Tensor<T> tensor) { return Tensor<const T>{tensor.data, tensor.row, tensor.head, tensor.batch}; };
  DeviceArray<Expected> expected(size_t(batch) * heads * rows * HEAD);
  reference<HEAD><<<dim3(rows, heads, batch), HEAD, keys * sizeof(double)>>>(
      rows, keys, heads_per_key, causal, scale, input(q), input(k), input(v), expected.data, expected_logarithms.data);
  attention_sm90::Plan<Element, causal, HEAD> plan;
  CHECK(plan.prepare(batch, heads, key_heads, rows, keys, scale, input(q), input(k), input(v), o, counter.data, logarithms.data));
  CHECK(plan.launch());
  CHECK(plan.launch());  // the first has left the counter as it was
  CHECK(cudaDeviceSynchronize());

  const std::vector<T> got = data_o.host(), values = data_v.host();
  const std::vector<Expected> wanted = expected.host();
  const std::vector<float> got_logarithms = logarithms.host();
  const std::vector<double> wanted_logarithms = expected_logarithms.host();
  for (size_t i = 0; i < got_logarithms.size(); ++i) {
    // The sum is of single numbers, some of them scaled again; its logarithm is good to 2^-21.
    const double error = wanted[i * HEAD].error + (keys + 32) * 0x1p-23 + 0x1p-20 * std::fabs(wanted_logarithms[i]);
    const bool none = std::isinf(wanted_logarithms[i]);
    if (none ? got_logarithms[i] != -INFINITY : !(std::fabs(got_logarithms[i] - wanted_logarithms[i]) <= error)) {
      std::printf("wrong: batch %d, heads %d, rows %d, keys %d: logarithm %zu is %g, not %g +- %g\n", batch, heads, rows, keys, i,
                  got_logarithms[i], wanted_logarithms[i], error);
      return false;
    }
  }
  std::vector<bool> written(got.size());
  for (int b = 0; b < batch; ++b) {
    for (int head = 0; head < heads; ++head) {
      for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < HEAD; ++i) {
          const int64_t at = b * o.batch + head * o.head + row * o.row + i;
          const Expected& want = wanted[((size_t(b) * heads + head) * rows + row) * HEAD + i];
          double x = double(float(got[at])), y = want.value, error = 0;
          written[at] = true;
          if (exact) {
            y = targets[row] < 0 ? 0 : double(float(values[b * v.batch + head / heads_per_key * v.head + targets[row] * v.row + i]));
          } else {
            // The weights are rounded, then summed in instructions of 16 with V; sums of weights are of single numbers.
            error = want.magnitude * (ROUNDING<T> + want.error + keys * 0x1p-23 + (keys / 16 + 1) * 17 * 0x1p-23) + keys * 4 * SMALLEST<T>;
            error += ROUNDING<T> * (std::fabs(y) + error) + SMALLEST<T>;
          }
          if (!(std::fabs(x - y) <= error)) {
            std::printf("wrong: batch %d, heads %d of %d, rows %d, keys %d, exact %d: O[%d][%d][%d][%d] is %g, not %g +- %g\n", batch,
                        heads, key_heads, rows, keys, exact, b, head, row, i, x, y, error);
            return false;
          }
        }
      }
    }
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (!written[i] && float(got[i]) != float(before[i])) {
      std::printf("wrong: batch %d, heads %d, rows %d, keys %d: O is written beside its rows\n", batch, heads, rows, keys);
      return false;
    }
  }
  return true;
}

template <class Element, bool causal, int head>
bool check_all(const char* name, int count) {
  std::mt19937 random(count);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < count; ++i) {
    // The first are whole numbers of tiles, and one element; the sixth and seventh are more than the chip computes at a time.
    const bool large = i == 5 || i == 6;
    const int rows = i < 2 ? 256 : i < 4 ? 1 : large ? 1000 : between(1, 700), keys = i < 2 ? 4 * 176 : i < 4 ? 1 : between(1, 1000);
    const int key_heads = large ? 20 : between(1, 3);
    if (!check<Element, causal, head>(between(1, 3), key_heads, between(1, 3), rows, keys, i % 5 == 4, between(0, 1), i % 2 == 0, i)) {
      std::printf("%s: FAILED\n", name);
      return false;
    }
  }
  std::printf("%s: %d shapes are right\n", name, count);
  return true;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 50;
  const bool right[] = {
      check_all<ptxmma::bf16, false, 128>("bf16", count),
      check_all<ptxmma::bf16, true, 128>("bf16, causal", count),
      check_all<ptxmma::bf16, false, 64>("bf16, heads of 64", count),
      check_all<ptxmma::bf16, true, 64>("bf16, heads of 64, causal", count),
      check_all<ptxmma::f16, false, 128>("f16", count),
      check_all<ptxmma::f16, true, 128>("f16, causal", count),
      check_all<ptxmma::f16, false, 64>("f16, heads of 64", count),
      check_all<ptxmma::f16, true, 64>("f16, heads of 64, causal", count),
  };
  for (const bool one : right) {
    if (!one) return EXIT_FAILURE;
  }
  std::printf("all right\n");
  return EXIT_SUCCESS;
}
