// Hooks of the operators that models call most, on arguments as C++ hands them over. Every other
// operator is hooked through boxed arguments, to the same effect; so is all of them in a build with
// KERNELFORGE_BOXED, for a torch whose headers do not fit this file.
#pragma once

#include "hook.h"

#ifndef KERNELFORGE_BOXED
#include <ATen/ops/add_ops.h>
#include <ATen/ops/batch_norm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/conv2d_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/group_norm_ops.h>
#include <ATen/ops/layer_norm_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/scaled_dot_product_attention_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softmax_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_ops.h>
#endif

namespace kernelforge {

#ifdef KERNELFORGE_BOXED

inline std::optional<Typed> typed_kernels(std::string_view, std::string_view, Hook*, bool) {
  return std::nullopt;
}

#else

// torch hands out the kernel that was there before for boxed calls only. An explicit instantiation
// may name a private member, which is how the kernel inside is reached.
struct KernelInside {
  using type = c10::KernelFunction c10::SafeKernelFunction::*;
  friend type inside(KernelInside);
};
template <class Tag, typename Tag::type member>
struct Reached {
  friend typename Tag::type inside(Tag) { return member; }
};
template struct Reached<KernelInside, &c10::SafeKernelFunction::kernel_>;

// The hook of an operator, as in Registry: these kernels are told no operator, so that each has a
// place of its own, and none has a state that could be read half swapped.
template <class Operator, bool cuda>
std::atomic<Hook*> place{nullptr};

template <class Operator, bool cuda, bool autograd, class Schema>
struct Kernel;

template <class Operator, bool cuda, bool autograd, class... Arguments>
struct Kernel<Operator, cuda, autograd, at::Tensor(Arguments...)> {
  using Function = at::Tensor(c10::DispatchKeySet, Arguments...);

  static at::Tensor call(c10::DispatchKeySet keys, Arguments... arguments) {
    auto* hook = place<Operator, cuda>.load(std::memory_order_acquire);
    const auto eager = [&](const c10::SafeKernelFunction& previous) {
      return (previous.*inside(KernelInside{}))
          .template call<at::Tensor, Arguments...>(hook->op(), keys,
                                                   std::forward<Arguments>(arguments)...);
    };
    return hook->template call<autograd>(keys, eager, arguments...);
  }

  static torch::CppFunction made() {
    return torch::CppFunction(c10::CompileTimeFunctionPointer<Function, &call>());
  }
};

template <class Operator, bool cuda, bool composite>
std::optional<Typed> typed(Hook* hook) {
  place<Operator, cuda>.store(hook, std::memory_order_release);
  using Schema = typename Operator::schema;
  Typed made{Kernel<Operator, cuda, false, Schema>::made(), std::nullopt};
  if constexpr (composite) made.autograd.emplace(Kernel<Operator, cuda, true, Schema>::made());
  return made;
}

template <bool composite, class... Operators>
std::optional<Typed> typed_among(std::string_view name, std::string_view overload, Hook* hook,
                                 bool cuda) {
  std::optional<Typed> found;
  const auto is = [&](std::string_view a, std::string_view b) { return a == name && b == overload; };
  ((is(Operators::name, Operators::overload_name)
        ? void(found = cuda ? typed<Operators, true, composite>(hook)
                            : typed<Operators, false, composite>(hook))
        : void()),
   ...);
  return found;
}

inline std::optional<Typed> typed_kernels(std::string_view name, std::string_view overload,
                                          Hook* hook, bool cuda) {
  namespace ops = at::_ops;
  auto found =
      typed_among<true, ops::batch_norm, ops::conv2d, ops::group_norm, ops::layer_norm, ops::linear,
                  ops::matmul, ops::rms_norm, ops::scaled_dot_product_attention, ops::softmax_int>(
          name, overload, hook, cuda);
  if (found) return found;
  return typed_among<false, ops::add_Tensor, ops::bmm, ops::div_Tensor, ops::embedding, ops::gelu,
                     ops::mean_dim, ops::mul_Tensor, ops::pow_Tensor_Scalar, ops::relu, ops::rsqrt,
                     ops::sigmoid, ops::silu, ops::sub_Tensor, ops::tanh>(name, overload, hook, cuda);
}

#endif

}  // namespace kernelforge
