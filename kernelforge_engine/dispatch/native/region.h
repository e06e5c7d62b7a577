// A region's call, which no operator of torch stands for: Python has compared everything but the
// tensors, and hands those over. kernelforge::serve compares them and runs the plan.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <tuple>

#include "hook.h"

namespace kernelforge {

// One instance of a module, or one function, called with arguments of which all but the tensors are
// known to be equal; its variants are told apart by their tensors.
class Site {
 public:
  Site(const char* name, c10::DeviceType type) : name_(name), type_(type) {}

  // Not negative: the form in which to return `outputs`. Else -1 - Reason, or kUnproven.
  int64_t serve(c10::DispatchKeySet keys, c10::ArrayRef<c10::IValue> tensors,
                c10::List<at::Tensor>& outputs) {
    Words words;
    const Variant* variant = nullptr;
    const auto reason = decide(keys, tensors, words, variant);
    if (C10_LIKELY(reason == Reason::kCount)) return run(*variant, words, outputs);
    if (variant && reason == Reason::kGuard) return kUnproven;
    misses_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
    return -1 - static_cast<int64_t>(reason);
  }

  Table& table() { return table_; }
  uint64_t misses(size_t reason) const { return misses_[reason].load(std::memory_order_relaxed); }

  static constexpr int64_t kUnproven = -1 - static_cast<int64_t>(Reason::kCount);

 private:
  // kCount is a hit; kGuard with a variant means that its program was not compared yet.
  Reason decide(c10::DispatchKeySet keys, c10::ArrayRef<c10::IValue> tensors, Words& words,
                const Variant*& variant) const {
    const auto autocast = type_ == c10::DeviceType::CUDA ? c10::DispatchKey::AutocastCUDA
                                                         : c10::DispatchKey::AutocastCPU;
    // Autocast would reach the operators inside.
    if (!plain_keys(keys) || !c10::impl::tls_is_dispatch_key_excluded(autocast)) {
      return Reason::kKeySet;
    }
    for (const auto& value : tensors) {
      if (!words.add_of_region(value.toTensor())) return Reason::kUnsupportedArgument;
    }
    const auto* found = table_.find(words);
    while (found && !found->serves()) found = found->older;
    if (!found) return Reason::kGuard;
    if (records(words)) return Reason::kAutograd;
    if (!found->loaded(words.placed())) return Reason::kDevice;
    variant = found;
    const bool proven = found->proof.load(std::memory_order_acquire) == Proof::kProven;
    return proven ? Reason::kCount : Reason::kGuard;
  }

  int64_t run(const Variant& variant, const Words& words, c10::List<at::Tensor>& outputs) const {
    const_cast<Variant&>(variant).hits.fetch_add(1, std::memory_order_relaxed);
    Hit hit(variant, words, type_);
    launched(hit, name_);
    hit.hand_over(outputs);
    return variant.form;
  }

  const std::string name_;
  const c10::DeviceType type_;
  Table table_;
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Reason::kCount)> misses_{};
};

// The sites of this process by number. Readers take no lock, writers are serialised by the caller,
// and a site is never freed, since a call may be on its way.
class Sites {
 public:
  Site* find(int64_t id) const {
    TORCH_CHECK(0 <= id && id < count_.load(std::memory_order_acquire), "there is no site ", id);
    return chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk];
  }

  int64_t add(Site* site) {
    const auto id = count_.load(std::memory_order_relaxed);
    TORCH_CHECK(id < kChunk * kChunk, "too many instances of regions");
    auto& chunk = chunks_[id / kChunk];
    if (!chunk.load(std::memory_order_relaxed)) chunk.store(new Site*[kChunk]());
    chunk.load(std::memory_order_relaxed)[id % kChunk] = site;
    count_.store(id + 1, std::memory_order_release);
    return id;
  }

 private:
  static constexpr int64_t kChunk = 4096;
  std::array<std::atomic<Site**>, kChunk> chunks_{};
  std::atomic<int64_t> count_{0};
};

inline Sites& sites() {
  static Sites all;
  return all;
}

inline void serve(const c10::OperatorHandle&, c10::DispatchKeySet keys, c10::Stack* stack) {
  c10::List<at::Tensor> outputs;
  const auto arguments = torch::jit::last(*stack, 2);
  const auto outcome =
      sites().find(arguments[1].toInt())->serve(keys, arguments[0].toListRef(), outputs);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(std::move(outputs));
  stack->emplace_back(outcome);
}

inline void register_serve() {
  static std::unique_ptr<torch::Library> library;
  if (library) return;
  auto made = std::make_unique<torch::Library>(torch::Library::FRAGMENT, "kernelforge",
                                               std::nullopt, __FILE__, __LINE__);
  made->def("serve(Tensor[] tensors, int site) -> (Tensor[], int)");
  const auto at = [&](c10::DispatchKey key) {
    made->impl("serve", torch::dispatch(key, torch::CppFunction::makeFromBoxedFunction<&serve>()));
  };
  at(c10::DispatchKey::CompositeImplicitAutograd);
  // The fallback of a mode, a subclass or a transform would trace, unwrap or batch a call before it
  // came here. A kernel of our own at every key sees the call as it was made, and refuses it.
  for (uint16_t i = 1; i < static_cast<uint16_t>(c10::DispatchKey::EndOfFunctionalityKeys); ++i) {
    const auto key = static_cast<c10::DispatchKey>(i);
    if (!c10::isPerBackendFunctionalityKey(key) && key != c10::DispatchKey::BackendSelect) at(key);
  }
  library = std::move(made);
}

}  // namespace kernelforge
