"""How elements of every dtype are spelled in C++, and how they become numbers and come back."""

from dataclasses import dataclass

from kernelforge_engine.calls import Backend

KINDS = {"i32": "int", "i64": "long long", "f32": "float", "f64": "double"}
PLAIN = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short",
    "int32": "int", "int64": "long long", "uint16": "unsigned short", "uint32": "unsigned int",
    "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
HALVES: dict[str, dict[Backend, str]] = {
    "bfloat16": {"cpu": "unsigned short", "cuda": "__nv_bfloat16"},
    "float16": {"cpu": "unsigned short", "cuda": "__half"},
}
CONVERSIONS: dict[str, dict[Backend, tuple[str, str]]] = {
    "bfloat16": {
        "cpu": ("bf16_to_float", "float_to_bf16"),
        "cuda": ("__bfloat162float", "__float2bfloat16"),
    },
    "float16": {
        "cpu": ("f16_to_float", "float_to_f16"),
        "cuda": ("__half2float", "__float2half"),
    },
}
INCLUDES = {"bfloat16": "#include <cuda_bf16.h>", "float16": "#include <cuda_fp16.h>"}
BFLOAT16 = """\
static inline float bf16_to_float(unsigned short h) {
  return __builtin_bit_cast(float, (unsigned)h << 16);
}
static inline unsigned short float_to_bf16(float v) {
  const unsigned u = __builtin_bit_cast(unsigned, v);
  return v == v ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0;
}"""
FLOAT16 = """\
static inline float f16_to_float(unsigned short h) {
  const unsigned low = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
  const float scaled = __builtin_bit_cast(float, low) * 0x1p112f;
  const unsigned finite = __builtin_bit_cast(unsigned, scaled);
  return __builtin_bit_cast(float, (low >= 0x7c00u << 13 ? low | 0x7f800000u : finite) | sign);
}
static inline unsigned short float_to_f16(float v) {
  const unsigned u = __builtin_bit_cast(unsigned, v), a = u & 0x7fffffffu;
  const float shifted = __builtin_bit_cast(float, a) + 0.5f;
  const unsigned small = __builtin_bit_cast(unsigned, shifted) - 0x3f000000u;
  const unsigned normal = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
  const unsigned r = a < 0x38800000u ? small : a >= 0x47800000u ? 0x7c00u : normal;
  return (a > 0x7f800000u ? 0x7e00u : r) | (u >> 16 & 0x8000u);
}"""
HELPERS = {"bfloat16": BFLOAT16, "float16": FLOAT16}
# Words that an argument of an operator may be called, but not a parameter in C++.
KEYWORDS = frozenset((
    "alignas", "alignof", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char",
    "class", "compl", "concept", "const", "delete", "default", "do", "double", "enum",
    "explicit", "export", "extern", "float", "friend", "goto", "inline", "int", "long",
    "mutable", "namespace", "new", "operator", "private", "protected", "public", "register",
    "requires", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
    "throw", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "xor", "INFINITY", "NAN",
))  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """Elements of one dtype on one backend.

    Attributes:
        type: of a stored element; dtypes that C++ has no name for are bytes.
        wide: the type that its value is computed in.
        read, write: functions from and to that type, empty where it converts by itself.
    """

    type: str
    wide: str
    read: str = ""
    write: str = ""

    def load(self, element: str) -> str:
        """An expression for the value of an element."""
        return f"{self.read}({element})" if self.read else element

    def store(self, value: str) -> str:
        """An expression for the element that holds a value."""
        return f"{self.write}({value})" if self.write else value


def cell(dtype: str, backend: Backend) -> Cell:
    """How elements of a dtype are handled."""
    if dtype in HALVES:
        read, write = CONVERSIONS[dtype][backend]
        return Cell(HALVES[dtype][backend], "float", read, write)
    spelled = PLAIN.get(dtype, "unsigned char")
    return Cell(spelled, spelled)
