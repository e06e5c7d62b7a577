"""Code the engine adds to a candidate: checks of its launches and, on the cpu, trampolines.

The checks and the trampolines stand behind the source but use templates that stand before it, and
every word of theirs loses the meaning that a macro of the candidate gave it. The loop over calls is
a translation unit of its own: nothing in the candidate's depends on how often it is called.
"""

import re

from kernelforge_engine.builder.compiler import Launches, Unit
from kernelforge_engine.calls import Backend

# SIDE is the execution space that NVRTC wants on every function, though none of these is called.
PRELUDE = """\
template <class... kf_T> struct kf_types { static constexpr int count = sizeof...(kf_T); };
template <class kf_R, class... kf_T> SIDE kf_types<kf_T...> kf_types_of(kf_R (*)(kf_T...));
template <int kf_I, class kf_L> struct kf_nth { using type = void; };
template <class kf_T, class... kf_R> struct kf_nth<0, kf_types<kf_T, kf_R...>> {
  using type = kf_T; };
template <int kf_I, class kf_T, class... kf_R> struct kf_nth<kf_I, kf_types<kf_T, kf_R...>>
  : kf_nth<kf_I - 1, kf_types<kf_R...>> {};
template <class kf_A, class kf_B> constexpr bool kf_same = false;
template <class kf_A> constexpr bool kf_same<kf_A, kf_A> = true;
template <class kf_T> constexpr bool kf_buffer = false;
template <class kf_T> constexpr bool kf_buffer<kf_T*> = true;
template <class kf_T> constexpr bool kf_integer = __is_enum(kf_T) || kf_same<kf_T, int>
  || kf_same<kf_T, unsigned> || kf_same<kf_T, long> || kf_same<kf_T, unsigned long>
  || kf_same<kf_T, long long> || kf_same<kf_T, unsigned long long>;
template <class kf_T, bool kf_I> struct kf_size { static constexpr int value = 0; };
template <class kf_T> struct kf_size<kf_T, true> { static constexpr int value = sizeof(kf_T); };
template <class kf_T> constexpr bool kf_i32 = kf_size<kf_T, kf_integer<kf_T>>::value == 4;
template <class kf_T> constexpr bool kf_i64 = kf_size<kf_T, kf_integer<kf_T>>::value == 8;
template <class kf_T> constexpr bool kf_f32 = kf_same<kf_T, float>;
template <class kf_T> constexpr bool kf_f64 = kf_same<kf_T, double>;
"""
CALLER = """\
template <int... kf_I> struct kf_indices {};
template <class kf_R, class... kf_T, int... kf_I>
inline void kf_apply(kf_R (*kf_f)(kf_T...), void** kf_a, kf_indices<kf_I...>) {
  (void)kf_a;
  kf_f(*static_cast<kf_T*>(kf_a[kf_I])...);
}
template <class kf_R, class... kf_T> inline void kf_call(kf_R (*kf_f)(kf_T...), void** kf_a) {
  kf_apply(kf_f, kf_a, kf_indices<__integer_pack(sizeof...(kf_T))...>{});
}
"""
# One native call runs a whole sample, so that a caller's overhead is not charged to the candidate.
REPEAT = """\
static void (*const kf_table[])(void**) = {NAMES};
constexpr long kf_launches = sizeof kf_table / sizeof kf_table[0];
struct kf_block { void* data; unsigned long bytes; };
extern "C" void kf_repeat(void*** kf_arguments, const kf_block* kf_zeroed, long kf_blocks,
                          long kf_sets, long kf_calls) {
  for (long kf_call = 0, kf_set = 0; kf_call < kf_calls; ++kf_call) {
    for (long kf_i = 0; kf_i < kf_blocks; ++kf_i) {
      const kf_block& kf_b = kf_zeroed[kf_set * kf_blocks + kf_i];
      __builtin_memset(kf_b.data, 0, kf_b.bytes);
    }
    for (long kf_i = 0; kf_i < kf_launches; ++kf_i)
      kf_table[kf_i](kf_arguments[kf_set * kf_launches + kf_i]);
    kf_set = kf_set + 1 == kf_sets ? 0 : kf_set + 1;
  }
}
"""
# How the processor rounds and what it does with tiny numbers belongs to the engine: a change would
# outlast the call that made it. Run on every thread that a candidate used.
MODES = """\
#if defined __x86_64__
static unsigned long kf_now() {
  unsigned short kf_word;
  asm volatile("fnstcw %0" : "=m"(kf_word));
  return (__builtin_ia32_stmxcsr() & ~0x3Fu) | (unsigned long)kf_word << 32;
}
static void kf_reset() {
  unsigned short kf_word = 0x37F;
  asm volatile("fldcw %0" : : "m"(kf_word));
  __builtin_ia32_ldmxcsr(0x1F80);
}
static const unsigned long kf_usual = 0x1F80ul | 0x37Ful << 32;
#elif defined __aarch64__
static unsigned long kf_now() { return __builtin_aarch64_get_fpcr(); }
static void kf_reset() { __builtin_aarch64_set_fpcr(0); }
static const unsigned long kf_usual = 0;
#else
static unsigned long kf_now() { return 0; }
static void kf_reset() {}
static const unsigned long kf_usual = 0;
#endif
extern "C" void kf_modes(int* kf_changed) {
  if (kf_now() == kf_usual) return;
  kf_reset();
  __atomic_store_n(kf_changed, 1, __ATOMIC_RELAXED);
}
"""
# Where each thread that runs this has its own variables of the candidate; the first place counts.
PLACE = """\
extern "C" { __attribute__((visibility("hidden"))) thread_local char kf_mark = 0; }
extern "C" void kf_place(long* kf_places) {
  kf_places[1 + __atomic_fetch_add(kf_places, 1, __ATOMIC_RELAXED)] = (long)&kf_mark;
}
"""
STRING = re.compile(r'"[^"\n]*"')
WORD = re.compile(r"[A-Za-z_]\w*")
WANTED = {
    "buffer": "a buffer, so parameter {n} of {kernel} must be a pointer",
    "i32": "i32, so parameter {n} of {kernel} must be an integer of 4 bytes, such as int",
    "i64": "i64, so parameter {n} of {kernel} must be an integer of 8 bytes, such as long long",
    "f32": "f32, so parameter {n} of {kernel} must be a float",
    "f64": "f64, so parameter {n} of {kernel} must be a double",
}


def unit(candidate: str, launches: Launches, backend: Backend, arch: str) -> Unit:
    """The translation units of a candidate."""
    on_cpu = backend == "cpu"
    behind = [_checks(i, kernel, kinds) for i, (kernel, kinds) in enumerate(launches)]
    if on_cpu:
        behind += [_trampoline(i, kernel) for i, (kernel, _) in enumerate(launches)]
    return Unit(
        candidate=candidate,
        before=PRELUDE.replace("SIDE", "") + CALLER
        if on_cpu
        else PRELUDE.replace("SIDE", "__device__"),
        behind="\n".join([_without_macros(behind, launches), *behind]),
        launches=launches,
        arch=arch,
        beside=_repeat(len(launches)) if on_cpu else "",
    )


def references(kernels: list[str]) -> str:
    """Host functions that mention every kernel, so that templates are instantiated."""
    return "\n".join(f"auto kf_reference_{i}() {{ return &{k}; }}" for i, k in enumerate(kernels))


def _checks(index: int, kernel: str, kinds: tuple[str, ...]) -> str:
    types, count = f"kf_types_{index}", len(kinds)
    lines = [
        f'#line 1 "launch[{index}]"',
        f"using {types} = decltype(kf_types_of(&{kernel}));",
        f"static_assert({types}::count == {count}, "
        f'"launch[{index}].args has {count} entries, but {kernel} has another number of '
        'parameters");',
    ]
    for position, kind in enumerate(kinds):
        wanted = WANTED[kind].format(n=position + 1, kernel=kernel)
        lines.append(
            f"static_assert({types}::count != {count} || "
            f"kf_{kind}<typename kf_nth<{position}, {types}>::type>, "
            f'"launch[{index}].args[{position}] is {wanted}");'
        )
    return "\n".join(lines)


def _without_macros(lines: list[str], launches: Launches) -> str:
    """Directives that end the candidate's macros of every word in `lines` but the kernels' own."""
    words = set(WORD.findall(STRING.sub("", "\n".join(lines))))
    words -= {word for kernel, _ in launches for word in WORD.findall(kernel)}
    return "\n".join(f"#undef {word}" for word in sorted(words - {"line"}))


def _trampoline(index: int, kernel: str) -> str:
    return f'extern "C" void kf_launch_{index}(void** kf_a) {{ kf_call(&{kernel}, kf_a); }}'


def _repeat(count: int) -> str:
    names = [f"kf_launch_{i}" for i in range(count)]
    declared = [f'extern "C" void {name}(void**);' for name in names]
    return "\n".join([*declared, REPEAT.replace("NAMES", ", ".join(names)), MODES, PLACE])
