// The clock that the chip runs at, and the power that it takes: the clock falls where the chip reaches the limit of its power.
#pragma once

#include <dlfcn.h>

class Clock {
 public:
  Clock() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto device = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    if (init == nullptr || device == nullptr || init() != 0 || device(0, &device_) != 0) return;
    clock_ = reinterpret_cast<int (*)(void*, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
    fields_ = reinterpret_cast<int (*)(void*, int, Field*)>(dlsym(library, "nvmlDeviceGetFieldValues"));
  }

  // Of the multiprocessors, as the driver tells it; 0 where it does not.
  unsigned megahertz() const {
    constexpr int multiprocessors = 1;
    unsigned clock = 0;
    return clock_ != nullptr && clock_(device_, multiprocessors, &clock) == 0 ? clock : 0;
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
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*fields_)(void*, int, Field*) = nullptr;
  void* device_ = nullptr;
};
