// Shadow mode: of the calls that kernels serve, one in so many is also run by the kernel that was
// there before, and what both answer is compared.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "plan.h"

namespace kernelforge {

class Shadow {
 public:
  static Shadow& get() { return shadow_; }

  // Compare one in `every` hits, 0 for none.
  void set(uint64_t every) { every_.store(every, std::memory_order_relaxed); }

  bool due() {
    const auto every = every_.load(std::memory_order_relaxed);
    return every && hits_.fetch_add(1, std::memory_order_relaxed) % every == 0;
  }

  // Whether any hits are compared.
  bool on() const { return every_.load(std::memory_order_relaxed) || comparing_.load(); }

  // Whether this thread is comparing: what runs then is eager's own. Nearly always no thread is,
  // which is cheaper to see than something of a thread's own.
  static bool comparing() {
    return C10_UNLIKELY(shadow_.comparing_.load(std::memory_order_relaxed)) && here();
  }

 private:
  friend class Comparing;
  static bool& here() {
    thread_local bool comparing = false;
    return comparing;
  }

  static Shadow shadow_;
  std::atomic<uint64_t> every_{0}, hits_{0}, comparing_{0};
};

inline Shadow Shadow::shadow_;

class Comparing {
 public:
  Comparing() {
    Shadow::shadow_.comparing_.fetch_add(1);
    Shadow::here() = true;
  }
  ~Comparing() {
    Shadow::here() = false;
    Shadow::shadow_.comparing_.fetch_sub(1);
  }

 private:
  const at::NoGradGuard no_grad_;
};

// The largest difference over the root mean square of eager's answer; values that are equal, NaN
// included, do not differ.
inline double difference(const at::Tensor& ours, const at::Tensor& eager) {
  if (!eager.numel()) return 0;
  const auto a = ours.to(at::kDouble), b = eager.to(at::kDouble);
  const auto same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const auto apart = at::where(same, at::zeros_like(a), a.sub(b)).abs();
  const double largest = apart.max().item<double>();
  if (largest == 0) return 0;
  if (!std::isfinite(largest)) return std::numeric_limits<double>::infinity();
  const auto finite = at::where(b.isfinite(), b, at::zeros_like(b));
  const double scale = std::sqrt(finite.square().mean().item<double>());
  return largest / std::max<double>(scale, std::numeric_limits<float>::min());
}

inline double difference(c10::ArrayRef<at::Tensor> ours, c10::ArrayRef<c10::IValue> eager) {
  double worst = 0;
  size_t next = 0;
  for (const auto& value : eager) {
    if (value.isTensor()) {
      worst = std::max(worst, difference(ours[next++], value.toTensor()));
    } else {
      for (const auto& tensor : value.toTensorVector()) {
        worst = std::max(worst, difference(ours[next++], tensor));
      }
    }
  }
  return worst;
}

inline void note(const Variant& variant, double found) {
  auto& known = const_cast<Variant&>(variant);
  known.compared.fetch_add(1, std::memory_order_relaxed);
  auto worst = known.worst.load(std::memory_order_relaxed);
  while (found > worst && !known.worst.compare_exchange_weak(worst, found)) {
  }
}

}  // namespace kernelforge
