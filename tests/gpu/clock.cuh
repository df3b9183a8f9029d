// The clock that the chip runs at: it falls where the chip reaches the limit of its power.
#pragma once

#include <dlfcn.h>

// The clock of the multiprocessors in MHz, as the driver tells it; 0 where it does not.
class Clock {
 public:
  Clock() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto device = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    read_ = reinterpret_cast<int (*)(void*, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
    if (init == nullptr || device == nullptr || init() != 0 || device(0, &device_) != 0) read_ = nullptr;
  }
  unsigned megahertz() const {
    constexpr int multiprocessors = 1;
    unsigned clock = 0;
    return read_ != nullptr && read_(device_, multiprocessors, &clock) == 0 ? clock : 0;
  }

 private:
  int (*read_)(void*, int, unsigned*) = nullptr;
  void* device_ = nullptr;
};
