// What one variant does on a hit: allocate its outputs and workspaces, and run its launches. Every
// number is a constant of the variant; only pointers come from the call.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <ATen/core/stack.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "driver.h"
#include "words.h"

namespace kernelforge {

enum class Role : int64_t { kInput, kOutput, kWorkspace };

struct Input {
  size_t bytes;  // from its first element to the end of the last one addressed
  bool mutated;
};

struct Buffer {
  Role role;
  int64_t index;  // within its role
  size_t bytes;
  bool zero;
};

struct Output {
  int64_t alias;  // the tensor argument that is returned, or -1 for a fresh tensor
  at::ScalarType dtype;
  std::vector<int64_t> sizes, strides;
};

struct Argument {
  int64_t buffer;  // or -1 for a number
  uint64_t bits;   // of which a 32-bit number takes the first four bytes
};

struct Launch {
  std::string kernel;
  std::vector<Argument> arguments;
  void (*host)(void**) = nullptr;
  std::array<CUfunction, Driver::kMaxDevices> functions{};
  std::array<CUcontext, Driver::kMaxDevices> contexts{};
  unsigned grid[3], block[3], cluster[3], shared = 0;
  bool clustered = false, cooperative = false;
};

// Whether what a region runs was found to be the program that its kernel was judged on.
enum class Proof : int { kUnproven, kProven, kRefused };

struct Variant {
  std::vector<uint64_t> key;
  uint64_t hash = 0;
  std::vector<Input> inputs;  // every tensor argument
  std::vector<Output> outputs;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  int64_t list_return = -1;  // the return that is a list of tensors
  std::atomic<uint64_t> hits{0}, compared{0};
  std::atomic<double> worst{0};  // of the comparisons in shadow mode
  std::atomic<bool> live{true};
  Variant* older = nullptr;  // installed earlier under the same key
  int64_t form = 0;          // of a region: which of the forms to return its outputs in
  const std::atomic<bool>* enabled = nullptr;  // of a region: the switch of all its variants
  std::atomic<Proof> proof{Proof::kUnproven};

  // Of a region: whether a call may be served, now or once its program is known.
  bool serves() const {
    return enabled->load(std::memory_order_acquire) &&
           proof.load(std::memory_order_acquire) != Proof::kRefused;
  }

  bool writes() const {
    return std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return i.mutated; });
  }

  bool matches(const uint64_t* words, size_t count, uint64_t digest) const {
    return hash == digest && key.size() == count && !std::memcmp(key.data(), words, 8 * count);
  }

  bool loaded(const c10::TensorImpl* placed) const {
    if (!placed) return true;
    const auto device = placed->device().index();
    if (device >= Driver::kMaxDevices) return false;
    return std::all_of(launches.begin(), launches.end(),
                       [device](const Launch& launch) { return launch.functions[device]; });
  }

  // Whether a tensor that is written shares bytes with another argument. The validated kernel has
  // only ever seen them apart.
  bool overlaps(const Words& call) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].mutated) continue;
      const auto begin = address(call, i), end = begin + inputs[i].bytes;
      for (size_t j = 0; j < inputs.size(); ++j) {
        const auto other = address(call, j);
        if (j != i && std::max(begin, other) < std::min(end, other + inputs[j].bytes)) return true;
      }
    }
    return false;
  }

 private:
  static uintptr_t address(const Words& call, size_t i) {
    return reinterpret_cast<uintptr_t>(call.tensor(i).unsafeGetTensorImpl()->data());
  }
};

// One hit: its tensors, pointers and stream.
class Hit {
 public:
  Hit(const Variant& variant, const Words& call, c10::DeviceType type)
      : variant_(variant), call_(call), type_(type) {
    if (type_ == c10::DeviceType::CUDA) {
      const auto device = call.placed()->device();
      guard_.reset_device(device);
      device_ = device.index();
      const auto* impl = c10::impl::getDeviceGuardImpl(type_);
      stream_ = static_cast<CUstream>(impl->getStream(device).native_handle());
    }
    allocate();
  }

  void launch() {
    if (type_ == c10::DeviceType::CUDA) {
      launch_on_device();
    } else {
      clear([](void* data, size_t bytes) { std::memset(data, 0, bytes); });
      for (const auto& launch : variant_.launches) launch.host(parameters(launch));
    }
  }

  // An in-place operator without an autograd kernel of its own must count its write here.
  void bump_versions() const {
    for (size_t i = 0; i < variant_.inputs.size(); ++i) {
      auto* impl = call_.tensor(i).unsafeGetTensorImpl();
      if (variant_.inputs[i].mutated && !impl->is_inference()) impl->bump_version();
    }
  }

  void finish(size_t arguments, size_t returns, c10::Stack* stack) {
    torch::jit::drop(*stack, arguments);
    const size_t listed = outputs_.size() + 1 - returns;
    size_t next = 0;
    for (size_t i = 0; i < returns; ++i) {
      if (static_cast<int64_t>(i) == variant_.list_return) {
        c10::List<at::Tensor> list;
        for (size_t j = 0; j < listed; ++j) list.push_back(std::move(outputs_[next++]));
        stack->emplace_back(std::move(list));
      } else {
        stack->emplace_back(std::move(outputs_[next++]));
      }
    }
  }

  // Whether the call is being recorded into a graph, where nothing may wait for it.
  bool recorded() const {
    if (type_ != c10::DeviceType::CUDA) return false;
    int status = 0;
    Driver::get().check(Driver::get().cuStreamIsCapturing(stream_, &status), "cuStreamIsCapturing");
    return status != 0;
  }

  c10::ArrayRef<at::Tensor> outputs() const { return outputs_; }

  // The output of an operator that returns one tensor.
  at::Tensor only() { return std::move(outputs_.front()); }

  // The outputs of a region.
  void hand_over(c10::List<at::Tensor>& outputs) {
    for (auto& output : outputs_) outputs.push_back(std::move(output));
  }

 private:
  void allocate() {
    // Asked for each time: torch lets a program change its CUDA allocator.
    auto* allocator = type_ == c10::DeviceType::CUDA
                          ? at::detail::getCUDAHooks().getCUDADeviceAllocator()
                          : c10::GetAllocator(type_);
    const c10::DispatchKeySet keys(type_ == c10::DeviceType::CUDA ? c10::DispatchKey::CUDA
                                                                  : c10::DispatchKey::CPU);
    for (const auto& output : variant_.outputs) {
      if (output.alias >= 0) {
        outputs_.push_back(call_.tensor(output.alias));
      } else {
        outputs_.emplace_back(at::detail::empty_strided_generic(output.sizes, output.strides,
                                                                allocator, keys, output.dtype));
      }
    }
    for (const auto& buffer : variant_.buffers) pointers_.push_back(pointer(buffer, allocator));
  }

  void* pointer(const Buffer& buffer, c10::Allocator* allocator) {
    switch (buffer.role) {
      case Role::kInput: {
        auto* impl = call_.tensor(buffer.index).unsafeGetTensorImpl();
        return variant_.inputs[buffer.index].mutated ? impl->mutable_data()
                                                     : const_cast<void*>(impl->data());
      }
      case Role::kOutput:
        return outputs_[buffer.index].unsafeGetTensorImpl()->mutable_data();
      default:
        workspaces_.push_back(allocator->allocate(buffer.bytes));
        return workspaces_.back().get();
    }
  }

  template <class Clear>
  void clear(Clear clear_bytes) const {
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const auto& buffer = variant_.buffers[i];
      if (buffer.zero && buffer.bytes) clear_bytes(pointers_[i], buffer.bytes);
    }
  }

  void** parameters(const Launch& launch) {
    parameters_.clear();
    for (const auto& argument : launch.arguments) {
      parameters_.push_back(argument.buffer >= 0 ? static_cast<void*>(&pointers_[argument.buffer])
                                                 : const_cast<uint64_t*>(&argument.bits));
    }
    return parameters_.data();
  }

  void launch_on_device() {
    if (variant_.launches.empty()) return;
    auto& driver = Driver::get();
    const ContextScope scope(driver, variant_.launches.front().contexts[device_]);
    clear([&](void* data, size_t bytes) {
      driver.check(driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(data), 0, bytes, stream_),
                   "cuMemsetD8Async");
    });
    for (const auto& launch : variant_.launches) {
      const auto result = launch.clustered || launch.cooperative ? extended(driver, launch)
                                                                 : plain(driver, launch);
      if (C10_UNLIKELY(result != 0)) driver.check(result, ("launching " + launch.kernel).c_str());
    }
  }

  CUresult plain(Driver& driver, const Launch& l) {
    return driver.cuLaunchKernel(l.functions[device_], l.grid[0], l.grid[1], l.grid[2], l.block[0],
                                 l.block[1], l.block[2], l.shared, stream_, parameters(l), nullptr);
  }

  CUresult extended(Driver& driver, const Launch& l) {
    CUlaunchAttribute attributes[2]{};
    CUlaunchConfig config{{l.grid[0], l.grid[1], l.grid[2]},
                          {l.block[0], l.block[1], l.block[2]},
                          l.shared, stream_, attributes, 0};
    if (l.clustered) {
      auto& attribute = attributes[config.count++];
      attribute.id = kAttributeClusterDimension;
      attribute.value.cluster = {l.cluster[0], l.cluster[1], l.cluster[2]};
    }
    if (l.cooperative) {
      auto& attribute = attributes[config.count++];
      attribute.id = kAttributeCooperative;
      attribute.value.cooperative = 1;
    }
    return driver.cuLaunchKernelEx(&config, l.functions[device_], parameters(l), nullptr);
  }

  const Variant& variant_;
  const Words& call_;
  const c10::DeviceType type_;
  c10::OptionalDeviceGuard guard_;
  int device_ = 0;
  CUstream stream_ = nullptr;
  c10::SmallVector<at::Tensor, 4> outputs_;
  c10::SmallVector<c10::DataPtr, 2> workspaces_;
  c10::SmallVector<void*, 16> pointers_;
  c10::SmallVector<void*, 32> parameters_;
};

}  // namespace kernelforge
