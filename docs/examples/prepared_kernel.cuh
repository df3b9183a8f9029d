// A kernel that is prepared once, with its arguments, and may be launched often.
#pragma once

#include <cuda_runtime.h>

namespace examples {

template <class Arguments>
class PreparedKernel {
 public:
  PreparedKernel() = default;
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;

  // Where it begins early, it waits for the kernel in front of it (griddepcontrol) before it reads what that one may write.
  cudaError_t launch(cudaStream_t stream = nullptr) const {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks_;
    config.blockDim = threads_;
    config.dynamicSmemBytes = shared_;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = early_ ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel_, arguments_);
  }

 protected:
  Arguments arguments_ = {};
  void (*kernel_)(Arguments) = nullptr;
  int threads_ = 0, shared_ = 0, blocks_ = 0;  // shared: bytes of a block
  bool early_ = false;                         // begins before the kernel in front of it ends: on Hopper and later
};

}  // namespace examples
