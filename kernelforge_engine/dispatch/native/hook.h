// A hook: the boxed kernel that stands in for one (operator, device), its variants, and the kernels
// that were there before.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan.h"
#include "shadow.h"

namespace kernelforge {

// Why a call went to the kernel that was there before; shim.py names them in this order.
enum class Reason { kKeySet, kUnsupportedArgument, kGuard, kAutograd, kOverlap, kDevice, kCount };

// Open addressing over variants. Readers take no lock; writers are serialised by the caller. Nothing
// a reader may hold is ever freed: a table that was outgrown is kept, and so is a removed variant.
class Table {
 public:
  // Whether some variant may have a first tensor like that of a call; cheaper to say no than find().
  bool may_hold(const Words& call) const {
    const auto bit = head_bit(hash_words(call.data(), call.head()));
    return heads_[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1;
  }

  const Variant* find(const Words& call) const {
    const auto* slots = slots_.load(std::memory_order_acquire);
    if (!slots) return nullptr;
    const uint64_t hash = hash_words(call.data(), call.size());
    for (size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
      const auto* variant = slots->heads[i].load(std::memory_order_acquire);
      if (!variant) return nullptr;
      if (!variant->matches(call.data(), call.size(), hash)) continue;
      while (variant && !variant->live.load(std::memory_order_acquire)) variant = variant->older;
      return variant;
    }
  }

  // The newest variant of a key stands before the older ones until it is removed.
  void insert(Variant* variant) {
    auto* slots = slots_.load(std::memory_order_relaxed);
    if (!slots || 2 * (used_ + 1) > slots->mask + 1) slots = grow(slots);
    const auto* words = variant->key.data();
    const auto bit = head_bit(hash_words(words, head_of(words, variant->key.size())));
    heads_[bit / 64].fetch_or(1ull << bit % 64, std::memory_order_release);
    place(*slots, variant);
  }

 private:
  static constexpr size_t kHeadBits = 4096;
  static size_t head_bit(uint64_t hash) { return hash % kHeadBits; }

  struct Slots {
    explicit Slots(size_t size) : mask(size - 1), heads(new std::atomic<Variant*>[size]()) {}
    const size_t mask;
    const std::unique_ptr<std::atomic<Variant*>[]> heads;
  };

  Slots* grow(const Slots* old) {
    kept_.push_back(std::make_unique<Slots>(old ? 2 * (old->mask + 1) : 8));
    auto* slots = kept_.back().get();
    used_ = 0;
    for (size_t i = 0; old && i <= old->mask; ++i) {
      if (auto* variant = old->heads[i].load(std::memory_order_relaxed)) place(*slots, variant);
    }
    slots_.store(slots, std::memory_order_release);
    return slots;
  }

  void place(Slots& slots, Variant* variant) {
    size_t i = variant->hash & slots.mask;
    Variant* head;
    while ((head = slots.heads[i].load(std::memory_order_relaxed)) &&
           !head->matches(variant->key.data(), variant->key.size(), variant->hash)) {
      i = (i + 1) & slots.mask;
    }
    if (head) {
      while (head && !head->live.load(std::memory_order_relaxed)) head = head->older;
      variant->older = head;
    } else {
      ++used_;
    }
    slots.heads[i].store(variant, std::memory_order_release);
  }

  std::array<std::atomic<uint64_t>, kHeadBits / 64> heads_{};  // a bit stays when a variant goes
  std::atomic<Slots*> slots_{nullptr};
  std::vector<std::unique_ptr<Slots>> kept_;
  size_t used_ = 0;
};

class Hook;

// The hook of each operator on one kind of device, by the address of its schema. The kernels that
// are registered find their hook here instead of holding it: the dispatcher swaps kernels while
// other threads call them, and only a kernel without state survives being read half swapped.
class Registry {
 public:
  Hook* find(const c10::FunctionSchema* schema) const {
    size_t i = start(schema);
    while (slots_[i].schema.load(std::memory_order_acquire) != schema) i = (i + 1) % kSlots;
    return slots_[i].hook.load(std::memory_order_acquire);
  }

  // An operator stays here for ever, since a call may be on its way when its hook is released.
  void set(const c10::FunctionSchema* schema, Hook* hook) {
    size_t i = start(schema);
    const c10::FunctionSchema* found;
    while ((found = slots_[i].schema.load()) && found != schema) i = (i + 1) % kSlots;
    if (!found) TORCH_CHECK(2 * ++used_ <= kSlots, "too many operators are hooked");
    slots_[i].hook.store(hook, std::memory_order_release);
    slots_[i].schema.store(schema, std::memory_order_release);
  }

 private:
  struct Slot {
    std::atomic<const c10::FunctionSchema*> schema{nullptr};
    std::atomic<Hook*> hook{nullptr};
  };
  static constexpr size_t kSlots = 8192;
  static size_t start(const void* key) {
    return (reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15ull) >> 51;
  }
  std::array<Slot, kSlots> slots_;
  size_t used_ = 0;
};

inline Registry& registry(bool cuda) {
  static Registry registries[2];
  return registries[cuda];
}

template <bool cuda, bool autograd>
void stand_in(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Stack* stack);

// Whether a derivative of this call is wanted, which only the operators inside record.
inline bool records(const Words& words) {
  const bool grad = at::GradMode::is_enabled();
  for (size_t i = 0; i < words.tensors(); ++i) {
    const auto& tensor = words.tensor(i);
    const auto* impl = tensor.unsafeGetTensorImpl();
    if (!impl->autograd_meta()) continue;
    if ((grad && impl->requires_grad()) || impl->_fw_grad(0, tensor).defined()) return true;
  }
  return false;
}

// Kernels for one operator that take its arguments as C++ hands them over, for the device and for
// autograd above it; there are some for what models call most. See typed.h.
struct Typed {
  torch::CppFunction backend;
  std::optional<torch::CppFunction> autograd;  // of composite operators
};
std::optional<Typed> typed_kernels(std::string_view name, std::string_view overload, Hook* hook,
                                   bool cuda);

// Runs the launches; out of memory stays torch's own error, since that is met before.
template <class Name>
void launched(Hit& hit, const Name& name) {
  try {
    hit.launch();
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, "Kernel Forge could not run its kernel for ", name, ": ",
                error.what_without_backtrace(),
                ". Next: set KERNELFORGE_DISABLE=1 to run without the cast, and report this.");
  }
}

class Hook {
 public:
  // Takes the place of the operator's kernel on a device. A composite operator has no kernel there:
  // giving it one would take away its decomposition above, so it is hooked at the autograd key too,
  // and there first, so that no call in between goes without its derivative.
  Hook(const char* name, const char* overload, c10::DeviceType type)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)),
        type_(type),
        arguments_(op_.schema().arguments().size()),
        returns_(op_.schema().returns().size()) {
    using c10::DispatchKey;
    const bool cuda = type == c10::DeviceType::CUDA;
    const auto key = cuda ? DispatchKey::CUDA : DispatchKey::CPU;
    const auto autograd = cuda ? DispatchKey::AutogradCUDA : DispatchKey::AutogradCPU;
    autocast_ = cuda ? DispatchKey::AutocastCUDA : DispatchKey::AutocastCPU;
    const bool implicit = op_.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
    decomposes_ = implicit || calls_others(name) ||
                  op_.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
    counts_writes_ = !op_.hasKernelForDispatchKey(DispatchKey::ADInplaceOrView);
    const bool both = implicit && !op_.hasKernelForDispatchKey(key);
    previous_.emplace(op_.getComputedKernelForDispatchKey(key));
    if (both) previous_autograd_.emplace(op_.getComputedKernelForDispatchKey(autograd));
    registry(cuda).set(&op_.schema(), this);
    auto typed = typed_kernels(name, overload, this, cuda);
    const auto boxed = [cuda](auto autograd) {
      return cuda ? at<true, autograd.value>() : at<false, autograd.value>();
    };
    if (both) {
      const bool made = typed && typed->autograd;
      at_autograd_ = replaced(autograd, made ? std::move(*typed->autograd) : boxed(std::true_type()));
    }
    at_backend_ = replaced(key, typed ? std::move(typed->backend) : boxed(std::false_type()));
  }

  // Restores the kernels that were there before. The hook itself outlives this, since another thread
  // may be inside it.
  void release() {
    at_backend_.reset();
    at_autograd_.reset();
  }

  void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Stack* stack,
            bool autograd) {
    if (C10_LIKELY(!Shadow::comparing())) {
      Words words;
      const Variant* variant = nullptr;
      const auto reason = decide(keys, *stack, autograd, words, variant);
      if (C10_LIKELY(reason == Reason::kCount)) {
        return run(*variant, words, op, keys, stack, autograd);
      }
      miss(reason);
    }
    previous(autograd).callBoxed(op, keys, stack);
  }

  // A call with nothing boxed, of an operator that returns one tensor: the kernel that serves it, or
  // no value where `eager` is to be called. Boxing costs a model more than all the rest of a miss,
  // since what it touches has left the caches when the next operator comes.
  template <bool autograd, class Eager, class... Arguments>
  at::Tensor call(c10::DispatchKeySet keys, Eager eager, const Arguments&... arguments) {
    if (C10_UNLIKELY(Shadow::get().on())) {
      c10::Stack stack;
      torch::jit::push(stack, arguments...);
      call(op_, keys, &stack, autograd);
      return stack.back().toTensor();
    }
    Words words;
    const Variant* variant = nullptr;
    auto reason = gate(keys);
    bool held = false;
    ((reason = reason == Reason::kCount ? add(words.typed(arguments), words, held) : reason), ...);
    if (reason == Reason::kCount) reason = match(autograd, words, variant);
    if (C10_LIKELY(reason != Reason::kCount)) {
      miss(reason);
      return eager(previous(autograd));
    }
    return served(*variant, words);
  }

  const c10::OperatorHandle& op() const { return op_; }

  Table& table() { return table_; }
  size_t returns() const { return returns_; }
  const c10::FunctionSchema& schema() const { return op_.schema(); }
  c10::DeviceType type() const { return type_; }
  uint64_t misses(size_t reason) const { return misses_[reason].load(std::memory_order_relaxed); }

 private:
  template <bool cuda, bool autograd>
  static torch::CppFunction at() {
    return torch::CppFunction::makeFromBoxedFunction<&stand_in<cuda, autograd>>();
  }

  std::unique_ptr<torch::Library> replaced(c10::DispatchKey key, torch::CppFunction kernel) const {
    const auto& name = op_.operator_name();
    auto local = name.name.substr(name.name.find("::") + 2);
    if (!name.overload_name.empty()) local += "." + name.overload_name;
    auto library = std::make_unique<torch::Library>(
        torch::Library::IMPL, std::string(*name.getNamespace()), std::nullopt, __FILE__, __LINE__);
    library->impl(local.c_str(), torch::dispatch(key, std::move(kernel)));
    return library;
  }

  // Operators with kernels of their own that call others which autocast changes, as a composite one
  // does; they are the same in dispatch/encode.py.
  static bool calls_others(std::string_view name) {
    return name == "aten::_transformer_encoder_layer_fwd" ||
           name == "aten::_native_multi_head_attention" ||
           name == "aten::_triton_multi_head_attention";
  }

  const c10::SafeKernelFunction& previous(bool autograd) const {
    return autograd ? *previous_autograd_ : *previous_;
  }

  void miss(Reason reason) {
    misses_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }

  // kCount is a hit, here and below.
  Reason decide(c10::DispatchKeySet keys, const c10::Stack& stack, bool autograd, Words& words,
                const Variant*& variant) const {
    auto reason = gate(keys);
    bool held = false;
    for (const auto& value : torch::jit::last(stack, arguments_)) {
      if (reason != Reason::kCount) return reason;
      reason = add(words.add(value), words, held);
    }
    return reason == Reason::kCount ? match(autograd, words, variant) : reason;
  }

  Reason gate(c10::DispatchKeySet keys) const {
    if (!plain_keys(keys)) return Reason::kKeySet;
    // Autocast reaches the operators inside a composite one; a kernel in its place would not.
    const bool inside = decomposes_ && !c10::impl::tls_is_dispatch_key_excluded(autocast_);
    return inside ? Reason::kKeySet : Reason::kCount;
  }

  // After one more argument: most misses are known by the first tensor.
  Reason add(bool added, const Words& words, bool& held) const {
    if (!added) return Reason::kUnsupportedArgument;
    if (held || !words.head()) return Reason::kCount;
    held = true;
    return table_.may_hold(words) ? Reason::kCount : Reason::kGuard;
  }

  C10_NOINLINE Reason match(bool autograd, const Words& words, const Variant*& variant) const {
    variant = table_.find(words);
    if (!variant) return Reason::kGuard;
    if (autograd && records(words)) return Reason::kAutograd;
    if (variant->overlaps(words)) return Reason::kOverlap;
    return variant->loaded(words.placed()) ? Reason::kCount : Reason::kDevice;
  }

  void run(const Variant& variant, const Words& words, const c10::OperatorHandle& op,
           c10::DispatchKeySet keys, c10::Stack* stack, bool autograd) {
    Hit hit(variant, words, type_);
    serve(variant, hit);
    if (C10_UNLIKELY(Shadow::get().due()) && !variant.writes() && !hit.recorded()) {
      const Comparing comparing;
      note(variant, compared(hit, op, keys, *stack, autograd));
    }
    hit.finish(arguments_, returns_, stack);
  }

  C10_NOINLINE at::Tensor served(const Variant& variant, const Words& words) const {
    Hit hit(variant, words, type_);
    serve(variant, hit);
    return hit.only();
  }

  C10_NOINLINE void serve(const Variant& variant, Hit& hit) const {
    const_cast<Variant&>(variant).hits.fetch_add(1, std::memory_order_relaxed);
    launched(hit, op_.operator_name());
    if (counts_writes_) hit.bump_versions();
  }

  // How far the kernel that was there before is from a hit; infinitely where it refuses the call.
  double compared(const Hit& hit, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  const c10::Stack& stack, bool autograd) const {
    const auto arguments = torch::jit::last(stack, arguments_);
    c10::Stack eager(arguments.begin(), arguments.end());
    try {
      previous(autograd).callBoxed(op, keys, &eager);
    } catch (const c10::Error&) {
      return std::numeric_limits<double>::infinity();
    }
    return difference(hit.outputs(), eager);
  }

  const c10::OperatorHandle op_;
  const c10::DeviceType type_;
  const size_t arguments_, returns_;
  c10::DispatchKey autocast_;
  bool decomposes_, counts_writes_;
  std::optional<c10::SafeKernelFunction> previous_, previous_autograd_;
  Table table_;
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Reason::kCount)> misses_{};
  std::unique_ptr<torch::Library> at_backend_, at_autograd_;
};

template <bool cuda, bool autograd>
void stand_in(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Stack* stack) {
  registry(cuda).find(&op.schema())->call(op, keys, stack, autograd);
}

}  // namespace kernelforge
