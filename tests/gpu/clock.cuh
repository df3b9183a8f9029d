// The clock that the chip runs at, and the power that it takes: the clock falls where the chip reaches the limit of its power.
#pragma once

#include <dlfcn.h>

#include <cuda_runtime.h>

#include "numbers.cuh"

struct Moment {
  long long cycles, nanoseconds;
};
constexpr int MOST_MULTIPROCESSORS = 256;

// Writes the moment to `moments[number of the multiprocessor]`. Counters of cycles differ from one multiprocessor to the next.
static __global__ void note(Moment* moments) {
  unsigned number;
  long long nanoseconds;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  if (number < MOST_MULTIPROCESSORS) moments[number] = {clock64(), nanoseconds};
}

// After all before it, and with all multiprocessors.
inline void note_moment(Moment* moments, cudaStream_t stream) {
  CHECK(cudaMemsetAsync(moments, 0, MOST_MULTIPROCESSORS * sizeof(Moment), stream));
  note<<<MOST_MULTIPROCESSORS, 1, 0, stream>>>(moments);
}

// The mean clock between two moments, as the multiprocessors count: the driver's reading is older than the stretch that is timed.
class Stretch {
 public:
  void begin(cudaStream_t stream) const { note_moment(begin_.data, stream); }
  void end(cudaStream_t stream) const { note_moment(end_.data, stream); }

  // After the end has been reached; 0 where no multiprocessor saw both.
  unsigned megahertz() const {
    const auto begin = begin_.host(), end = end_.host();
    for (int i = 0; i < MOST_MULTIPROCESSORS; ++i) {
      if (begin[i].nanoseconds == 0 || end[i].nanoseconds <= begin[i].nanoseconds) continue;
      return static_cast<unsigned>(1000 * (end[i].cycles - begin[i].cycles) / (end[i].nanoseconds - begin[i].nanoseconds));
    }
    return 0;
  }

 private:
  DeviceArray<Moment> begin_{MOST_MULTIPROCESSORS}, end_{MOST_MULTIPROCESSORS};
};

class Power {
 public:
  Power() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto device = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    if (init == nullptr || device == nullptr || init() != 0 || device(0, &device_) != 0) return;
    fields_ = reinterpret_cast<int (*)(void*, int, Field*)>(dlsym(library, "nvmlDeviceGetFieldValues"));
  }

  // Of the board at this moment, not the mean of the last second; 0 where the driver does not tell.
  unsigned watts() const {
    constexpr unsigned instant = 186, milliwatts = 1000;  // NVML_FI_DEV_POWER_INSTANT
    Field field = {instant, 0, 0, 0, 0, 0, {0}};
    return fields_ != nullptr && fields_(device_, 1, &field) == 0 && field.status == 0 ? field.value.number / milliwatts : 0;
  }

 private:
  struct Field {  // nvmlFieldValue_t
    unsigned id, scope;
    long long timestamp, latency;
    int type, status;
    union {
      unsigned number;
      double real;
      unsigned long long large;
    } value;
  };
  int (*fields_)(void*, int, Field*) = nullptr;
  void* device_ = nullptr;
};
