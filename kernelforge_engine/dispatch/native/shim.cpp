// The C exports that shim.py drives. They depend neither on the Python version nor on CUDA headers;
// a failure is a null pointer or a nonzero result, with its text in kf_error().
#include "region.h"
#include "typed.h"

namespace {

using namespace kernelforge;

thread_local std::string failure;

// Replacing a kernel is the point here, so the dispatcher's warning about it is not news.
struct Quiet final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

template <class Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const c10::Error& error) {
    failure = error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return {};
}

void raise_attribute(Driver& driver, CUfunction function, int attribute, int value) {
  int current = 0;
  driver.check(driver.cuFuncGetAttribute(&current, attribute, function), "cuFuncGetAttribute");
  if (current < value) {
    driver.check(driver.cuFuncSetAttribute(function, attribute, value), "cuFuncSetAttribute");
  }
}

// Several variants may share a function, so its limits are only ever raised.
void prepare(const Launch& launch, int device) {
  auto& driver = Driver::get();
  const ContextScope scope(driver, launch.contexts[device]);
  const auto function = launch.functions[device];
  if (launch.shared) {
    raise_attribute(driver, function, kMaxDynamicSharedSizeBytes, static_cast<int>(launch.shared));
  }
  if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > kPortableCluster) {
    raise_attribute(driver, function, kNonPortableClusterSize, 1);
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* kf_error() { return failure.c_str(); }

EXPORT Hook* kf_hook(const char* name, const char* overload, int cuda) {
  return guarded([&] {
    Quiet quiet;
    const c10::WarningUtils::WarningHandlerGuard silence(&quiet);
    return new Hook(name, overload, cuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU);
  });
}

EXPORT void kf_unhook(Hook* hook) { hook->release(); }

EXPORT uint64_t kf_misses(const Hook* hook, int reason) { return hook->misses(reason); }

EXPORT Variant* kf_variant(const uint64_t* words, size_t count) {
  auto* variant = new Variant;
  variant->key.assign(words, words + count);
  variant->hash = hash_words(words, count);
  return variant;
}

EXPORT void kf_input(Variant* variant, size_t bytes, int mutated) {
  variant->inputs.push_back({bytes, mutated != 0});
}

EXPORT void kf_output(Variant* variant, int64_t alias, int dtype, size_t rank,
                      const int64_t* sizes, const int64_t* strides) {
  variant->outputs.push_back({alias, static_cast<at::ScalarType>(dtype),
                              {sizes, sizes + rank}, {strides, strides + rank}});
}

EXPORT void kf_buffer(Variant* variant, int64_t role, int64_t index, size_t bytes, int zero) {
  variant->buffers.push_back({static_cast<Role>(role), index, bytes, zero != 0});
}

// `dimensions` are grid, block and cluster, three numbers each; a cluster of zeros is none.
EXPORT void kf_launch(Variant* variant, const char* kernel, const unsigned* dimensions,
                      unsigned shared, int cooperative) {
  auto& launch = variant->launches.emplace_back();
  launch.kernel = kernel;
  std::copy_n(dimensions, 3, launch.grid);
  std::copy_n(dimensions + 3, 3, launch.block);
  std::copy_n(dimensions + 6, 3, launch.cluster);
  launch.shared = shared;
  launch.clustered = launch.cluster[0] != 0;
  launch.cooperative = cooperative != 0;
}

EXPORT void kf_argument(Variant* variant, int64_t buffer, uint64_t bits) {
  variant->launches.back().arguments.push_back({buffer, bits});
}

EXPORT void kf_host_function(Variant* variant, void* function) {
  variant->launches.back().host = reinterpret_cast<void (*)(void**)>(function);
}

EXPORT int kf_device_function(Variant* variant, int device, CUfunction function) {
  return guarded([&] {
    auto& launch = variant->launches.back();
    launch.contexts.at(device) = Driver::get().context(device);
    launch.functions.at(device) = function;
    prepare(launch, device);
    return true;
  });
}

EXPORT int kf_install(Hook* hook, Variant* variant) {
  const auto& returns = hook->schema().returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].type()->kind() == c10::TypeKind::ListType) variant->list_return = i;
  }
  if (variant->list_return < 0 && returns.size() != variant->outputs.size()) {
    failure = "the operator returns " + std::to_string(returns.size()) + " tensors here";
    return false;
  }
  hook->table().insert(variant);
  return true;
}

EXPORT void kf_remove(Variant* variant) { variant->live.store(false, std::memory_order_release); }

EXPORT uint64_t kf_hits(const Variant* variant) {
  return variant->hits.load(std::memory_order_relaxed);
}

// Compare one in `every` hits with eager, 0 for none.
EXPORT void kf_shadow(uint64_t every) { Shadow::get().set(every); }

EXPORT uint64_t kf_compared(const Variant* variant) {
  return variant->compared.load(std::memory_order_relaxed);
}

EXPORT double kf_worst(const Variant* variant) {
  return variant->worst.load(std::memory_order_relaxed);
}

// Whether this process already uses a device, so that loading code there opens no new context.
EXPORT int kf_device_active(int device) {
  return guarded([&] {
    auto& driver = Driver::get();
    CUdevice ordinal;
    unsigned flags;
    int active = 0;
    driver.check(driver.cuDeviceGet(&ordinal, device), "cuDeviceGet");
    driver.check(driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &active),
                 "cuDevicePrimaryCtxGetState");
    return active != 0;
  });
}

EXPORT CUmodule kf_module(int device, const void* image) {
  return guarded([&] {
    auto& driver = Driver::get();
    const ContextScope scope(driver, driver.context(device));
    CUmodule module = nullptr;
    driver.check(driver.cuModuleLoadData(&module, image), "cuModuleLoadData");
    return module;
  });
}

// Loaded at once: the driver would otherwise put it off to the first launch, which may be part of a
// graph capture, where loading is not allowed.
EXPORT CUfunction kf_function(int device, CUmodule module, const char* symbol) {
  return guarded([&] {
    auto& driver = Driver::get();
    const ContextScope scope(driver, driver.context(device));
    CUfunction function = nullptr;
    driver.check(driver.cuModuleGetFunction(&function, module, symbol), "cuModuleGetFunction");
    if (driver.cuFuncLoad) driver.check(driver.cuFuncLoad(function), "cuFuncLoad");
    int bytes;
    driver.check(driver.cuFuncGetAttribute(&bytes, kSharedSizeBytes, function),
                 "cuFuncGetAttribute");
    return function;
  });
}

// The operator of a process through which regions are called, registered once.
EXPORT int kf_serving() {
  return guarded([] {
    register_serve();
    return true;
  });
}

// A site's number, or -1.
EXPORT int64_t kf_site(const char* name, int cuda) {
  try {
    return sites().add(new Site(name, cuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU));
  } catch (const c10::Error& error) {
    failure = error.what_without_backtrace();
    return -1;
  }
}

EXPORT uint64_t kf_site_misses(int64_t site, int reason) {
  return sites().find(site)->misses(reason);
}

// What turns the variants of one entry of a cast on and off together.
EXPORT std::atomic<bool>* kf_switch() { return new std::atomic<bool>(false); }

EXPORT void kf_turn(std::atomic<bool>* enabled, int on) {
  enabled->store(on != 0, std::memory_order_release);
}

EXPORT void kf_seat(int64_t site, Variant* variant, int64_t form,
                    const std::atomic<bool>* enabled) {
  variant->form = form;
  variant->enabled = enabled;
  sites().find(site)->table().insert(variant);
}

EXPORT void kf_prove(Variant* variant, int proof) {
  variant->proof.store(static_cast<Proof>(proof), std::memory_order_release);
}
