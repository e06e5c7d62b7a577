// CUDA device code as host code, slow and exact enough to test a kernel's arithmetic without a GPU.
// Every thread of a block is a fiber; barriers and warp exchanges switch between fibers. The blocks
// of a cooperative launch get a host thread each, those of any other launch run one by one.
#undef _FORTIFY_SOURCE  // its longjmp knows nothing of fibers
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static thread_local  // one block runs on a host thread at a time
using std::max;
using std::min;

struct Dimensions { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline thread_local Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

struct Gate {  // opens when all that are alive wait at it
    int alive = 0, waiting = 0, round = 0;
    void open() { waiting = 0, round++; }
};

struct Fiber {
    ucontext_t context;
    Dimensions index;
    bool done = false;
    std::unique_ptr<char[]> stack;
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Gate> warps;
    std::vector<float> exchanged;
    Gate all;
    ucontext_t home;
    int now = 0;
    const std::function<void()>* body = nullptr;
};
inline thread_local Block* block;

inline void pass() { swapcontext(&block->fibers[block->now].context, &block->home); }

inline void wait(Gate& gate) {
    int round = gate.round;
    if (++gate.waiting == gate.alive) return gate.open();
    while (gate.round == round) pass();
}

inline void leave(Gate& gate) {
    if (--gate.alive == gate.waiting && gate.waiting) gate.open();
}

inline void fiber() {
    Block& b = *block;
    (*b.body)();
    b.fibers[b.now].done = true;
    leave(b.warps[b.now / 32]);
    leave(b.all);
    pass();
}

inline void run(const std::function<void()>& body, Dimensions at, Dimensions grid, Dimensions size) {
    constexpr size_t STACK = 32768;
    const unsigned n = size.x * size.y * size.z;
    static thread_local Block b;
    block = &b, b.body = &body, b.all = {(int)n};
    b.fibers.resize(std::max<size_t>(n, b.fibers.size()));
    b.exchanged.resize(n);
    b.warps.assign((n + 31) / 32, {});
    blockIdx = at, gridDim = grid, blockDim = size;
    for (unsigned i = 0; i < n; i++) {
        Fiber& f = b.fibers[i];
        if (!f.stack) f.stack.reset(new char[STACK]);
        f.done = false;
        f.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
        getcontext(&f.context);
        f.context.uc_stack = {f.stack.get(), 0, STACK};
        makecontext(&f.context, fiber, 0);
        b.warps[i / 32].alive++;
    }
    for (unsigned left = n; left;)
        for (unsigned i = 0; i < n; i++) {
            Fiber& f = b.fibers[i];
            if (f.done) continue;
            b.now = i, threadIdx = f.index;
            swapcontext(&b.home, &f.context);
            left -= f.done;
        }
}

template <class... P>
void launch(void (*kernel)(P...), void** values, const unsigned* s, bool cooperative) {
    auto call = [=]<size_t... I>(std::index_sequence<I...>) { kernel(*(P*)values[I]...); };
    const std::function<void()> body = [=] { call(std::index_sequence_for<P...>{}); };
    const Dimensions grid = {s[0], s[1], s[2]}, size = {s[3], s[4], s[5]};
    std::vector<std::thread> blocks;
    for (unsigned i = 0; i < grid.x * grid.y * grid.z; i++) {
        Dimensions at = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
        if (cooperative) blocks.emplace_back([=, &body] { run(body, at, grid, size); });
        else run(body, at, grid, size);
    }
    for (auto& b : blocks) b.join();
}

inline float exchange(float value, int lane) {
    Block& b = *block;
    const int me = b.now;
    b.exchanged[me] = value;
    wait(b.warps[me / 32]);
    float found = b.exchanged[me / 32 * 32 + lane];
    wait(b.warps[me / 32]);
    return found;
}

inline int lane() { return block->now % 32; }

}  // namespace emulation

inline void __syncthreads() { emulation::wait(emulation::block->all); }
inline void __syncwarp() { emulation::wait(emulation::block->warps[emulation::block->now / 32]); }
inline float __shfl_sync(unsigned, float v, int lane) { return emulation::exchange(v, lane); }
inline float __shfl_xor_sync(unsigned, float v, int mask) {
    return emulation::exchange(v, emulation::lane() ^ mask);
}
inline float __shfl_down_sync(unsigned, float v, int by) {
    int from = emulation::lane() + by;
    return emulation::exchange(v, from < 32 ? from : emulation::lane());
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline unsigned atomicAdd(unsigned* p, unsigned v) {
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
template <class T> T __ldcg(const T* p) { return *p; }
inline float __expf(float x) { return expf(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __uint_as_float(unsigned u) { return __builtin_bit_cast(float, u); }
inline unsigned __float_as_uint(float f) { return __builtin_bit_cast(unsigned, f); }

// The instructions that the kernels write in assembly.
inline unsigned narrow_bf16(float x) {
    unsigned u = __float_as_uint(x);
    return x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline unsigned narrow_f16(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }
inline unsigned cvt_rn_bf16x2_f32(float high, float low) {
    return narrow_bf16(low) | narrow_bf16(high) << 16;
}
inline unsigned cvt_rn_f16x2_f32(float high, float low) {
    return narrow_f16(low) | narrow_f16(high) << 16;
}
inline float cvt_f32_f16(unsigned short bits) { return __builtin_bit_cast(_Float16, bits); }
inline float rcp_approx_f32(float x) { return 1.0f / x; }

#define EMULATED(index, kernel)                                                              \
    extern "C" void emulated_##index(void** values, const unsigned* sizes, bool cooperative) { \
        emulation::launch(&kernel, values, sizes, cooperative);                              \
    }
