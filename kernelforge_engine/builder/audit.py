"""What a built cpu candidate may contain: imported functions, libraries, instructions.

The sandbox decides what a candidate can do; this decides what it can ask for at all, so that a
candidate that wants more than to compute is refused with words, before it is ever loaded.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.builder import disassembly, elf, mangling
from kernelforge_engine.builder.words import listed, shortened
from kernelforge_engine.calls import Json

MATHS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 "
    "exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma "
    "llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward "
    "pow pow10 remainder remquo rint round roundeven scalb scalbln scalbn significand sin sincos "
    "sinh sqrt tan tanh tgamma trunc y0 y1 yn __finite __fpclassify __isinf __isnan __signbit "
    "cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow "
    "cproj creal csin csinh csqrt ctan ctanh"
)
PLAIN = (
    "memcpy memmove memset memcmp memchr strlen strcmp __memcpy_chk __memmove_chk __memset_chk "
    "malloc calloc realloc free aligned_alloc posix_memalign qsort bsearch abs labs llabs "
    "abort __assert_fail __stack_chk_fail __chk_fail __tls_get_addr __libc_single_threaded "
    "lgamma_r lgammaf_r lgammal_r __gmon_start__ __dynamic_cast __gxx_personality_v0 "
    "__gcc_personality_v0 __cpu_model __cpu_indicator_init"
)
ERRORS = (
    "exception bad_exception bad_alloc bad_array_new_length bad_cast bad_typeid logic_error "
    "domain_error invalid_argument length_error out_of_range runtime_error range_error "
    "overflow_error underflow_error"
)
ARITHMETIC = (  # of libgcc, on types that the processor has no instructions for
    "abs add ashl ashr bswap clrsb clz cmp ctz div divmod eq extend ffs fix fixuns float floatun "
    "ge gt le lshr lt mod mul ne neg parity popcount powi sub trunc ucmp udiv udivmod umod unord"
)
ALLOWED = (
    rf"(?:{'|'.join(MATHS.split())})(?:f|l|f16|f32|f64|f32x|f64x|f128)?",
    "|".join(PLAIN.split()),
    rf"__(?:{'|'.join(ARITHMETIC.split())})v?(?:[hbsdtx][ifc]){{1,2}}[234]?",
    r"_ZGV\w+",  # vector functions of libmvec
    r"_Z(?:n[wa]|d[la])\w*|_ZSt7nothrow",  # operators new and delete
    r"__cxa_\w+|_Unwind_\w+|_ITM_\w+",
    r"_ZTVN10__cxxabiv1\w+|_ZSt\d+__throw_\w+|_ZSt9terminatev",
    rf"_Z(?:T[IVS]|NK?)St\d+(?:{'|'.join(ERRORS.split())})(?:E?|[CDa]\w+|4what\w+)",
    r"_ZNK?St7__cxx1112basic_string\w+",
    r"_ZNK?St8__detail20_Prime_rehash_policy\w+|_ZSt11_Hash_bytes\w+|_ZSt\d+_Rb_tree_\w+",
    r"_ZNSt8__detail15_List_node_base\w+|_ZNSt8ios_base4Init[CD]\dEv",  # what <iostream> calls
    r"GOMP_\w+|omp_get_\w+|omp_in_\w+|omp_(?:init|destroy|set|unset|test)_(?:nest_)?lock",
)
IMPORT = re.compile("|".join(f"(?:{each})" for each in ALLOWED))
RUNTIME = re.compile(r"__(?:asan|ubsan|sanitizer)_\w+")  # of an instrumented build
RUNTIME_LIBRARY = re.compile(r"lib(?:asan|ubsan)\.so\.\d+")
LIBRARY = re.compile(r"lib(?:m|mvec|gcc_s|stdc\+\+|c)\.so\.\d+|ld-linux[\w.-]*\.so\.\d+")
STARTUP = ("_ITM_", "__gmon_start__", "__cxa_finalize")  # of every shared object
# Tags whose value names a library, and the end mark.
NEEDED, AUXILIARY, FILTER, END = 1, 0x7FFFFFFD, 0x7FFFFFFF, 0
X86_64 = 62
SYSTEM_CALL = re.compile(rb"\x0f\x05|\x0f\x34|\xcd\x80")
SYSTEM_BYTES = (
    "it contains the bytes of a system call (0F 05, 0F 34 or CD 80), which is not allowed; "
    "if you wrote none, they are part of a number or a distance: change the code around it"
)
IDENTITY = codec.sha256(codec.dumps([IMPORT.pattern, LIBRARY.pattern, "4"]))


def refusal(
    folder: Path, environment: Mapping[str, str], *, instrumented: bool = False
) -> str | None:
    """Why kernel.so in `folder`, linked from unit.o and repeat.o, is not used, or None.

    An `instrumented` build may also ask for the runtime of the sanitizers. Its code is longer, so
    bytes that look like a system call come by chance: they were looked for in the ordinary build.
    """
    image = (folder / "kernel.so").read_bytes()
    parts = elf.sections(image)
    unit, ours = (elf.sections((folder / name).read_bytes()) for name in ("unit.o", "repeat.o"))
    return (
        _imports(parts, environment, instrumented)
        or _replacements(unit, ours)
        or _libraries(parts, instrumented)
        or _instructions(parts, 0 if instrumented else elf.machine(image))
        or _changing(unit, elf.machine(image), folder, environment)
    )


def contents(folder: Path, environment: Mapping[str, str]) -> dict[str, Json]:
    """What kernel.so in `folder` needs of others, and what nothing here could look for in it."""
    image = (folder / "kernel.so").read_bytes()
    parts = elf.sections(image)
    looked = elf.machine(image) == X86_64 and disassembly.program(environment) is not None
    wanted = {s.name for s in elf.symbols(parts, elf.DYNAMIC_SYMBOLS) if not s.defined}
    names = sorted(name for name in wanted if not name.startswith(STARTUP))
    readable = mangling.demangled(names, environment)
    return {
        "imports": shortened([readable.get(name, name) for name in names]),
        "libraries": shortened(sorted(_needed(parts))),
        "unchecked": [] if looked else ["clocks, counters and chance of the processor"],
    }


def _imports(
    parts: list[elf.Section], environment: Mapping[str, str], instrumented: bool
) -> str | None:
    wanted = {s.name for s in elf.symbols(parts, elf.DYNAMIC_SYMBOLS) if not s.defined}
    allowed = [IMPORT, *([RUNTIME] if instrumented else [])]
    names = sorted(n for n in wanted if not any(each.fullmatch(n) for each in allowed))
    if not names:
        return None
    readable = mangling.demangled(names, environment)
    return (
        f"it calls {listed([readable.get(name, name) for name in names])}: a candidate may "
        "compute, use memory and OpenMP, and call nothing of the system"
    )


def _replacements(unit: list[elf.Section], ours: list[elf.Section]) -> str | None:
    """Functions that the engine's loop calls must not be the candidate's, but for its launches."""
    made = {s.name for s in elf.symbols(unit, elf.SYMBOLS) if s.defined}
    wanted = {s.name for s in elf.symbols(ours, elf.SYMBOLS) if not s.defined}
    names = sorted(n for n in made & wanted if not n.startswith("kf_launch_"))
    return f"it defines {listed(names)}, which the system has: rename it" if names else None


def _libraries(parts: list[elf.Section], instrumented: bool) -> str | None:
    entries = [(tag, value) for tag, value in elf.dynamic(parts) if tag != END]
    tags = [tag for tag, _ in entries if tag != NEEDED]
    if len(set(tags)) != len(tags):
        return "it writes to the sections that the loader reads, which is not allowed"
    libraries = _needed(parts)
    allowed = [LIBRARY, *([RUNTIME_LIBRARY] if instrumented else [])]
    names = sorted(n for n in libraries if not any(each.fullmatch(n) for each in allowed))
    return f"it needs {listed(names)}: only the C++ runtime is there" if names else None


def _changing(
    unit: list[elf.Section], machine: int, folder: Path, environment: Mapping[str, str]
) -> str | None:
    if machine != X86_64:
        return None
    if names := disassembly.data_among_instructions(unit):
        return f"it has data among its instructions ({listed(names)}), which is not allowed"
    try:
        found = disassembly.changing(folder / "unit.o", environment)
    except disassembly.Unreadable:
        return "objdump cannot read its instructions, so nobody can say what they do"
    if found:
        return (
            f"it uses {listed(found)}: what it computes must not depend on time, on counters of "
            "the processor or on chance"
        )
    return None


def _needed(parts: list[elf.Section]) -> list[str]:
    table = next((parts[part.link].data for part in parts if part.kind == elf.DYNAMIC), b"")
    entries = elf.dynamic(parts)
    return [elf.text(table, v) for tag, v in entries if tag in (NEEDED, AUXILIARY, FILTER)]


def _instructions(parts: list[elf.Section], machine: int) -> str | None:
    executable = [part for part in parts if part.flags & elf.EXECUTABLE]
    if any(part.flags & elf.WRITABLE for part in executable):
        return "it has instructions that it can overwrite, which is not allowed"
    if machine == X86_64 and any(SYSTEM_CALL.search(part.data) for part in executable):
        return SYSTEM_BYTES
    return None
