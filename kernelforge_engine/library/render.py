"""From a kernel file to a self-contained candidate: its placeholders filled, and in front of its
code the types and only those shared functions that it uses."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from kernelforge_engine.calls import Backend

KERNELS = Path(__file__).parent / "kernels"
SUFFIX: dict[Backend, str] = {"cpu": "cpp", "cuda": "cu"}
BASE: dict[Backend, str] = {"cpu": "cpu/vector.h", "cuda": "cuda/scalar.h"}
C_NAMES = {"float32": "float", "bfloat16": "bf16", "float16": "f16"}

# A word that a source may use, and the file that defines it; the first of a file's words is enough.
FRAGMENTS: dict[Backend, dict[str, str]] = {
    "cpu": {
        "exp_": "cpu/exp.h",
        "sqrt_": "cpu/sqrt.h",
        "gelu_table_": "cpu/gelu_table.h",
        **dict.fromkeys(("infinity", "sum", "largest", "lanes", "load_end"), "cpu/rows.h"),
        "tanh_": "math/tanh.h",
        "gelu_": "math/gelu.h",
        "gelu_tanh_": "math/gelu_tanh.h",
        "cells": "math/window.h",
    },
    "cuda": {
        **dict.fromkeys(("exp_", "sqrt_", "quotient"), "cuda/approx.h"),
        **dict.fromkeys(("infinity", "WARP", "warp_sum", "block_sum"), "cuda/reduce.h"),
        "Moments": "cuda/moments.h",
        "Affine": "cuda/affine.h",
        "tanh_": "math/tanh.h",
        "gelu_": "math/gelu.h",
        "gelu_tanh_": "math/gelu_tanh.h",
        "cells": "math/window.h",
    },
}


def render(
    backend: Backend,
    kernel: str,
    types: Mapping[str, str],
    fields: Mapping[str, object] | None = None,
    constants: Mapping[str, int] | None = None,
) -> str:
    """The text of a candidate.

    `types` gives T, U, P a dtype each, `fields` fill the placeholders, and those `constants` that
    are used get defined.
    """
    body = Template(_read(f"{backend}/{kernel}.{SUFFIX[backend]}"))
    # Conversions from and to 16 bits are arithmetic that wide vectors pay for.
    narrow = "#define NARROW\n" if set(types.values()) == {"float32"} else ""
    text = body.substitute({"narrow": narrow, **(fields or {})}, prelude="$prelude")
    return text.replace("$prelude\n", _prelude(backend, text, types, constants or {}))


def _prelude(
    backend: Backend, text: str, types: Mapping[str, str], constants: Mapping[str, int]
) -> str:
    dtypes = [C_NAMES[t] for t in sorted(set(types.values())) if t != "float32"]
    headers = [BASE[backend], *(f"{backend}/{name}.h" for name in dtypes)]
    shared = "".join(map(_read, _needed(backend, text, set())))
    names = [f"using {name} = {C_NAMES[dtype]};" for name, dtype in types.items()]
    names += [
        f"constexpr {'bool' if isinstance(value, bool) else 'int'} {name} = {int(value)};"
        for name, value in constants.items()
        if re.search(rf"\b{name}\b", shared + text)
    ]
    return "".join(map(_read, headers)) + "\n".join(names) + "\n" + shared


def _needed(backend: Backend, text: str, seen: set[str]) -> list[str]:
    """The files that `text` needs, each behind the files it needs itself."""
    files: list[str] = []
    for word in re.findall(r"\b[A-Za-z]\w*\b", text):
        file = FRAGMENTS[backend].get(word)
        if file and file not in seen:
            seen.add(file)
            files += [*_needed(backend, _read(file), seen), file]
    return files


@cache
def _read(name: str) -> str:
    return (KERNELS / name).read_text(encoding="utf-8")
