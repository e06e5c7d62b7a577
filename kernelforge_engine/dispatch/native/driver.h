// The part of the CUDA driver that launching needs, found at run time, so that the shim builds and
// loads on machines without CUDA. Declarations follow cuda.h, whose ABI the driver keeps stable.
#pragma once

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace kernelforge {

using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUdeviceptr = unsigned long long;

constexpr int kSharedSizeBytes = 1, kMaxDynamicSharedSizeBytes = 8, kNonPortableClusterSize = 14;
constexpr int kAttributeCooperative = 2, kAttributeClusterDimension = 4;
constexpr unsigned kPortableCluster = 8;

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster;
    void* alignment;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8);

struct CUlaunchConfig {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, stream) == 32);

class Driver {
 public:
  static constexpr int kMaxDevices = 64;

  // Throws when there is no usable driver.
  static Driver& get() {
    static Driver driver;
    return driver;
  }

  void check(CUresult result, const char* call) const {
    if (C10_LIKELY(result == 0)) return;
    const char *name = nullptr, *text = nullptr;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    TORCH_CHECK(false, call, " gave ", name ? name : std::to_string(result), " (",
                text ? text : "no description", ")");
  }

  // The primary context of a device, which is the one torch uses; retained for the whole process.
  CUcontext context(int device) {
    TORCH_CHECK(0 <= device && device < kMaxDevices, "there is no CUDA device ", device);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!contexts_[device]) {
      CUdevice ordinal;
      check(cuDeviceGet(&ordinal, device), "cuDeviceGet");
      check(cuDevicePrimaryCtxRetain(&contexts_[device], ordinal), "cuDevicePrimaryCtxRetain");
    }
    return contexts_[device];
  }

  CUresult (*cuInit)(unsigned);
  CUresult (*cuGetErrorName)(CUresult, const char**);
  CUresult (*cuGetErrorString)(CUresult, const char**);
  CUresult (*cuDeviceGet)(CUdevice*, int);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*cuDevicePrimaryCtxGetState)(CUdevice, unsigned*, int*);
  CUresult (*cuCtxGetCurrent)(CUcontext*);
  CUresult (*cuCtxPushCurrent)(CUcontext);
  CUresult (*cuCtxPopCurrent)(CUcontext*);
  CUresult (*cuModuleLoadData)(CUmodule*, const void*);
  CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char*);
  CUresult (*cuFuncGetAttribute)(int*, int, CUfunction);
  CUresult (*cuFuncSetAttribute)(CUfunction, int, int);
  CUresult (*cuMemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
  CUresult (*cuStreamIsCapturing)(CUstream, int*);
  CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void**, void**);
  CUresult (*cuLaunchKernelEx)(const CUlaunchConfig*, CUfunction, void**, void**);
  CUresult (*cuFuncLoad)(CUfunction);  // since CUDA 12.4, else nullptr

 private:
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(library, "libcuda.so.1 cannot be loaded: ", dlerror());
    find(library, "cuInit", cuInit);
    find(library, "cuGetErrorName", cuGetErrorName);
    find(library, "cuGetErrorString", cuGetErrorString);
    find(library, "cuDeviceGet", cuDeviceGet);
    find(library, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain);
    find(library, "cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState);
    find(library, "cuCtxGetCurrent", cuCtxGetCurrent);
    find(library, "cuCtxPushCurrent_v2", cuCtxPushCurrent);
    find(library, "cuCtxPopCurrent_v2", cuCtxPopCurrent);
    find(library, "cuModuleLoadData", cuModuleLoadData);
    find(library, "cuModuleGetFunction", cuModuleGetFunction);
    find(library, "cuFuncGetAttribute", cuFuncGetAttribute);
    find(library, "cuFuncSetAttribute", cuFuncSetAttribute);
    find(library, "cuMemsetD8Async", cuMemsetD8Async);
    find(library, "cuStreamIsCapturing", cuStreamIsCapturing);
    find(library, "cuLaunchKernel", cuLaunchKernel);
    find(library, "cuLaunchKernelEx", cuLaunchKernelEx);
    cuFuncLoad = reinterpret_cast<decltype(cuFuncLoad)>(dlsym(library, "cuFuncLoad"));
    check(cuInit(0), "cuInit");
  }

  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    TORCH_CHECK(function, "this CUDA driver has no ", name, "; it is older than CUDA 11.8");
  }

  std::mutex mutex_;
  std::array<CUcontext, kMaxDevices> contexts_{};
};

// Makes a context current for a scope. A thread that has called no CUDA runtime function yet has
// none, and torch may have served its whole allocation from a cache.
class ContextScope {
 public:
  ContextScope(Driver& driver, CUcontext context) : driver_(driver) {
    CUcontext current = nullptr;
    driver.check(driver.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current == context) return;
    driver.check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    pushed_ = true;
  }
  ~ContextScope() {
    CUcontext popped;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Driver& driver_;
  bool pushed_ = false;
};

}  // namespace kernelforge
