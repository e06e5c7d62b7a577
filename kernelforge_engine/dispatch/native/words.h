// Guard words of a live call, computed from the dispatcher's stack. They equal, word for word, what
// kernelforge_engine/cast/words.py computes from a recorded call.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/core/DispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace kernelforge {

enum Tag : uint64_t { kNone = 1, kTensor, kInt, kFloat, kBool, kString, kList, kAgain };

// The keys a plain call on dense tensors may carry. One key more, of a mode, a subclass, a transform
// or a lazy bit, and the call means something else than the bytes of its tensors say.
inline bool plain_keys(c10::DispatchKeySet keys) {
  using c10::DispatchKey;
  static const uint64_t plain =
      c10::DispatchKeySet({DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::AutogradCPU,
                           DispatchKey::AutogradCUDA, DispatchKey::ADInplaceOrView,
                           DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA})
          .raw_repr();
  return (keys.raw_repr() & ~plain) == 0;
}

constexpr uint64_t kHashSeed = 0x9E3779B97F4A7C15ull;

// A hash goes on where one of the words before ended.
inline uint64_t hash_words(const uint64_t* words, size_t count, uint64_t hash = kHashSeed) {
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return hash;
}

// How many words of a key there are up to the end of its first tensor, or none.
inline size_t head_of(const uint64_t* words, size_t count) {
  for (size_t i = 0; i < count;) {
    switch (words[i] & 0xff) {
      case kTensor:
        return std::min(count, i + 1 + 2 * (words[i] >> 16 & 0xff));
      case kString:
        i += 1 + ((words[i] >> 8) + 7) / 8;
        break;
      case kNone:
      case kList:
        i += 1;
        break;
      default:
        i += 2;
    }
  }
  return 0;
}

class Words {
 public:
  static constexpr size_t kMaxWords = 512, kMaxTensors = 128;

  // Adds one schema argument; false when no guard can cover it.
  bool add(const c10::IValue& value) {
    if (value.isTensor()) return add(value.toTensor());
    if (value.isInt()) return pair(kInt, static_cast<uint64_t>(value.toInt()));
    if (value.isNone()) return put(kNone);
    if (value.isBool()) return pair(kBool, value.toBool() ? 1 : 0);
    if (value.isDouble()) return real(value.toDouble());
    if (value.isString()) return text(value.toStringRef());
    if (value.isList()) return list(value);
    return false;
  }

  // The same for an argument as C++ hands it over; what is boxed has the same words.
  bool typed(const at::Tensor& tensor) { return add(tensor); }
  bool typed(int64_t number) { return pair(kInt, static_cast<uint64_t>(number)); }
  bool typed(double number) { return real(number); }
  bool typed(bool flag) { return pair(kBool, flag ? 1 : 0); }
  bool typed(c10::string_view string) { return text({string.data(), string.size()}); }
  bool typed(at::ScalarType type) { return typed(static_cast<int64_t>(type)); }
  bool typed(const c10::SymInt& number) {
    const auto known = number.maybe_as_int();
    return known && typed(*known);
  }
  bool typed(const at::Scalar& number) {
    if (number.isSymbolic()) return false;
    if (number.isBoolean()) return typed(number.toBool());
    if (number.isFloatingPoint()) return typed(number.toDouble());
    return number.type() == at::ScalarType::Long && typed(number.toLong());
  }
  template <class T>
  bool typed(c10::ArrayRef<T> items) {
    bool fits = put(kList | static_cast<uint64_t>(items.size()) << 8);
    for (const auto& item : items) fits = fits && typed(item);
    return fits;
  }
  template <class T>
  bool typed(const std::optional<T>& value) {
    return value ? typed(*value) : put(kNone);
  }
  bool typed(const at::OptionalIntArrayRef& value) { return value ? typed(*value) : put(kNone); }

  // Adds a tensor that a region was given or owns; one that comes once more is said by its number.
  bool add_of_region(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (same(*tensors_[i], tensor)) return pair(kAgain, i);
    }
    return add(tensor);
  }

  const uint64_t* data() const { return words_; }
  size_t size() const { return size_; }
  const at::Tensor& tensor(size_t i) const { return *tensors_[i]; }
  size_t tensors() const { return count_; }

  // How many words there are up to the end of the first tensor, or none.
  size_t head() const { return head_; }

  // The accelerator all tensors lie on, or nullptr when every one is in host memory.
  const c10::TensorImpl* placed() const { return placed_; }

 private:
  bool put(uint64_t word) {
    if (C10_UNLIKELY(size_ == kMaxWords)) return false;
    words_[size_++] = word;
    return true;
  }
  bool pair(uint64_t tag, uint64_t word) { return put(tag) && put(word); }

  bool real(double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return pair(kFloat, bits);
  }

  bool text(std::string_view string) {
    if (!put(kString | static_cast<uint64_t>(string.size()) << 8)) return false;
    for (size_t i = 0; i < string.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, string.data() + i, std::min<size_t>(8, string.size() - i));
      if (!put(word)) return false;
    }
    return true;
  }

  bool list(const c10::IValue& value) {
    const auto items = value.toListRef();
    if (!put(kList | static_cast<uint64_t>(items.size()) << 8)) return false;
    for (const auto& item : items) {
      if (!add(item)) return false;
    }
    return true;
  }

  bool add(const at::Tensor& tensor) {
    if (!tensor.defined()) return put(kNone);
    const auto* impl = tensor.unsafeGetTensorImpl();
    if (C10_UNLIKELY(impl->is_wrapped_number())) return wrapped(*impl);
    if (C10_UNLIKELY(count_ == kMaxTensors)) return false;
    if (impl->device_type() != c10::DeviceType::CPU) {
      if (!placed_) placed_ = impl;
      if (placed_->device() != impl->device()) return false;
    }
    const auto sizes = impl->sizes();
    const auto strides = impl->strides();
    const auto address = reinterpret_cast<uintptr_t>(impl->data());
    bool fits = put(kTensor | static_cast<uint64_t>(tensor.scalar_type()) << 8 |
                    static_cast<uint64_t>(sizes.size()) << 16 |
                    static_cast<uint64_t>(impl->device_type()) << 24 |
                    static_cast<uint64_t>(address % 16 == 0) << 40);
    for (size_t i = 0; i < sizes.size(); ++i) {
      fits = fits && pair(static_cast<uint64_t>(sizes[i]), static_cast<uint64_t>(strides[i]));
    }
    if (!count_) head_ = size_;
    tensors_[count_++] = &tensor;
    return fits;
  }

  // Whether two tensors are the same memory in the same layout; empty ones, the same object.
  static bool same(const at::Tensor& first, const at::Tensor& second) {
    const auto *a = first.unsafeGetTensorImpl(), *b = second.unsafeGetTensorImpl();
    if (a == b) return true;
    return a->data() == b->data() && a->numel() && a->dtype() == b->dtype() &&
           a->sizes() == b->sizes() && a->strides() == b->strides();
  }

  // `x + 1.5` reaches the dispatcher with a tensor made of the number; it is keyed by its value.
  bool wrapped(const c10::TensorImpl& impl) {
    switch (c10::typeMetaToScalarType(impl.dtype())) {
      case c10::ScalarType::Double:
        return real(*static_cast<const double*>(impl.data()));
      case c10::ScalarType::Long:
        return pair(kInt, *static_cast<const uint64_t*>(impl.data()));
      case c10::ScalarType::Bool:
        return pair(kBool, *static_cast<const bool*>(impl.data()) ? 1 : 0);
      default:
        return false;
    }
  }

  uint64_t words_[kMaxWords];
  const at::Tensor* tensors_[kMaxTensors];
  size_t size_ = 0, count_ = 0, head_ = 0;
  const c10::TensorImpl* placed_ = nullptr;
};

}  // namespace kernelforge
