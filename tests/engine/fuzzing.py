"""Fuzzed candidate files and mutated casts: the same seed makes the same ones.

    python tests/engine/fuzzing.py --candidates 10000 --casts 1000 --cast X.cast

runs all of them through an engine and prints what became of them as JSON; it exits with 1 when
the engine raised anything but an error of its own, left a process behind, or said something of the
host. `--cast` names a cast to mutate.
"""

import argparse
import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

import anyio

from kernelforge_engine import codec
from kernelforge_engine.cast import archive, manifest, signing
from kernelforge_engine.cast.compare import compare
from kernelforge_engine.cast.merging import merge
from kernelforge_engine.cast.publish import save
from kernelforge_engine.cast.report import report
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import CastRejected, CastsConflict, KernelForgeError
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_server.cli.cast_sheet import facts, heading, kernels_sheet
from kernelforge_server.settings import resolve

CANARY = "canary-5b1f0c"
MODEL = """import torch


def make_model():
    return lambda x: torch.relu(x)


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(8, 16)
"""
HEADER = """[let]
n = "in0.numel"
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:n"]
"""
BODY = """extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
ATOMS = (
    "in0.numel", "in0.shape[0]", "in0.shape[-1]", "in0.stride[1]", "in0.shape[99]", "n", "x", "in0",
    "out0.numel", "ws0", "0", "-1", "1e308", "nan", "2**62", "9223372036854775807", "1 << 60",
    "in0.__class__", "().__class__.__base__", "open('/etc/passwd')", "f'{n}'", "lambda: 0", "True",
    "None", "'a'", "[1, 2]", "in0.shape", "\N{GREEK SMALL LETTER PI}", "",
)  # fmt: skip
FORMS = (
    "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / {b})", "({a} % {b})", "-({a})",
    "ceil_div({a}, {b})", "min({a}, {b})", "max({a})", "next_pow2({a})", "{a}.numel", "{a}[{b}]",
    "{a} ** {b}", "{a} if {b} else 0", "{a}({b})", "{a} or {b}", "{a} @ {b}",
)  # fmt: skip
LINES = (
    'kernel = "k<int>"', 'kernel = "nope"', "kernel = 3", "grid = []", "grid = [0]",
    "block = [-1]",
    'shared = "in0.numel * 1000000"', "cluster = [2]", "cooperative = true", "args = []",
    "args = 1",
    'args = ["in0"]', 'args = ["in7", "out0"]', 'args = ["f32:1/0"]', "[workspace.ws0]",
    'bytes = "1 << 50"', 'bytes = "-5"', 'init = "zero"', "[output.out0]", "[output.out9]",
    "[[let]]",
    "a = 1979-05-27", "b = {c = {d = [[[[]]]]}}", "[launch]", "= =", '"""', "x = 1_0", "[a.b.c.d]",
    'n = "n"', 'm = "k"\nk = "m"', "k = inf", "\\", "#" * 300,
)  # fmt: skip
PIECES = (
    '#include "/etc/passwd"', "#include </proc/self/environ>", '#include "CANARY"', "#error CANARY",
    "#embed </etc/passwd>", '#line 1 "CANARY"', "#if __has_include(</root/.ssh/id_rsa>)\n#endif",
    'asm("syscall");', "#pragma GCC poison y", "#pragma once", "#define for while", "#define k(",
    "template<int N> struct R { R<N + 1> r; }; R<0> r;", "#define A A A A\nA", "struct { int a",
    "}",
    'static_assert(sizeof(int) == 8, "no");', "__attribute__((constructor)) void early() {}", "`",
    'extern "C" long syscall(long, ...); long leak = syscall(0);', "int a[1L << 40];", "??/",
    'extern "C" int system(const char*); int s = system("id");', "#include <fstream>", "\x00",
    "\x1b[",
    "#include <unistd.h>\nint p = getpid();", "#include <vector>\nstd::vector<int> v(1L << 40);",
    'const char* f = __FILE__; const char* d = __DATE__;', "/*", "*/", '"', "R\"(", "\ufeff",
    "\u202e",
    "#include __FILE__", "constexpr int f(int n) { return f(n + 1); } int z = f(0);", "\\\n",
)  # fmt: skip
STATEMENTS = (
    "y[n] = 1;", "y[-1] = 1;", "*(volatile int*)0 = 1;", "__builtin_trap();", "throw 1;", "n /= 0;",
    "y[n << 40] = 1;", "((float*)x)[0] = 1;", "y[0] = __builtin_nanf(\"\");", "k(x, y, n);", ";",
    "for (long i = 0; i < 1L << 30; ++i) y[i] = 0;", "__builtin_memset(y, 0, 1 << 30);", "return;",
    "static long c; y[0] = ++c;", "y[0] += 1;", "volatile char b[1 << 24]; b[0] = 1;",
)  # fmt: skip
# What no answer may hold: files and folders of the host, its interpreter, contents that were read.
LEAKS = re.compile(
    rf"{CANARY}-inside|root:x:0|/usr/|/etc/(?!passwd|\.)|/home/\w|/tmp/|/proc/(?!self/environ)\d"
    r"|Traceback \(most|\.pyenv|site-packages|BEGIN \w+ PRIVATE"
)


def expression(rng, depth):
    """A size expression, mostly a wrong one."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ATOMS)
    form = rng.choice(FORMS)
    return form.format(a=expression(rng, depth - 1), b=expression(rng, depth - 1))


def _mutated(rng, text, alphabet):
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(text) + 1), rng.randint(0, 12)
        piece = rng.choice(("", rng.choice(alphabet), text[at : at + length] * rng.randint(1, 3)))
        text = text[:at] + piece + text[at + rng.choice((0, length)) :]
    return text


def _fuzzed_header(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return _mutated(rng, HEADER, LINES)
    if kind == 1:
        lines = HEADER.splitlines() + [rng.choice(LINES) for _ in range(rng.randint(1, 4))]
        rng.shuffle(lines)
        return "\n".join(lines) + "\n"
    depth = 400 if kind == 2 and rng.random() < 0.1 else rng.randint(1, 6)
    text = "-" * depth + "1" if depth == 400 else expression(rng, depth)
    return HEADER.replace('"i64:n"', json.dumps(f"{rng.choice(('i64', 'i32', 'f32'))}:{text}"))


def _fuzzed_source(rng, canary):
    kind = rng.randrange(3)
    if kind == 0:
        return _mutated(rng, BODY, PIECES).replace("CANARY", canary)
    if kind == 1:
        pieces = [rng.choice(PIECES) for _ in range(rng.randint(1, 3))]
        return "\n".join([*pieces, BODY]).replace("CANARY", canary)
    lines = BODY.splitlines()
    for _ in range(rng.randint(1, 2)):
        lines.insert(rng.randint(1, len(lines) - 1), rng.choice(STATEMENTS))
    return "\n".join(lines) + "\n"


def candidate(rng, canary, sources):
    """One file; a share `sources` of them has a header that is fine and a source that is not."""
    if rng.random() < sources:
        return f"/* kernelforge\n{HEADER}*/\n{_fuzzed_source(rng, canary)}"
    if rng.random() < 0.1:
        return _mutated(rng, f"/* kernelforge\n{HEADER}*/\n{BODY}", ("\ud800", "/*", "*/", "\r"))
    return f"/* kernelforge\n{_fuzzed_header(rng)}*/\n{BODY}"


def _leaf(rng, value):
    strange = (None, -1, 1 << 70, 1e400, "", "../../etc/passwd", "x" * 5000, [], {}, True, [value])
    return rng.choice(strange)


def _changed(rng, document):
    """A JSON document with one place changed."""
    document = json.loads(json.dumps(document))
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else range(len(here))
        key = rng.choice(list(keys))
        deeper = isinstance(here[key], dict | list) and here[key]
        if not deeper or rng.random() < 0.15:
            break
        here = here[key]
    if rng.random() < 0.2:
        del here[key]
    else:
        here[key] = _leaf(rng, here[key])
    return document


def _packed(files):
    buffer = io.BytesIO()
    sums = "".join(f"{codec.sha256(files[n])}  {n}\n" for n in sorted(files)).encode()
    whole = {**files, archive.CHECKSUMS: sums}
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in sorted(whole, key=lambda n: (n != archive.FIRST, n)):
            packed.writestr(zipfile.ZipInfo(name, archive.EPOCH), whole[name])
    return buffer.getvalue()


def mutated_cast(rng, path):
    """The bytes of a cast with damage anywhere, or with right checksums and a changed document."""
    data = path.read_bytes()
    if rng.random() < 0.5:
        raw = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        return bytes(raw[: rng.randrange(len(raw))] if rng.random() < 0.2 else raw)
    files = dict(archive.read(path).files)
    if rng.random() < 0.8:  # else every other change is found by the signature
        files.pop(signing.NAME, None)
    names = (archive.FIRST, manifest.MANIFEST, manifest.MANIFEST, signing.NAME)
    name = rng.choice([name for name in names if name in files])
    if rng.random() < 0.15:
        source = next(n for n in files if n.startswith("sources/"))
        files[source] = _mutated(rng, files[source].decode(), PIECES).encode("utf-8", "replace")
    else:
        files[name] = json.dumps(_changed(rng, json.loads(files[name]))).encode()
    return _packed(files)


def _used(path, other):
    """Everything that is done with a cast without running it."""
    found, read = report(path), manifest.read(path)
    json.dumps(codec.dump(found), allow_nan=False)
    said = [heading(found), *facts(found, trusted=False), *map(str, kernels_sheet(found).lines(80))]
    assert "\x1b" not in "".join(said)
    codec.dumps(compare(other, read))
    with contextlib.suppress(CastsConflict):
        save(path.with_name("merged.cast"), merge([other, read]).draft)


class Fuzz:
    """What became of everything that was tried on one engine."""

    def __init__(self, engine, variant, folder):
        self._engine, self._variant, self._folder = engine, variant, folder
        inside = folder / "secret.h"
        inside.write_text(f"#error {CANARY}-inside\n")
        self._canary = str(inside)
        self.outcomes, self.failures = Counter(), []

    async def candidates(self, rng, count, sources):
        """Submit `count` fuzzed files, an honest one after every hundred."""
        for number in range(count):
            await self._submit(candidate(rng, self._canary, sources))
            if number % 100 == 99:
                await self._honest(number)

    async def _honest(self, number):
        text = f"/* kernelforge\n{HEADER}*/\n{BODY}// {number}\n"
        proposal = Proposal(text=text, variant_id=self._variant)
        found = await self._engine.submit(proposal, lambda _progress: None)
        if found.node is None:
            self.failures.append(("an honest kernel is refused", text, str(found.verdict)))

    async def _submit(self, text):
        try:
            proposal = Proposal(text=text, variant_id=self._variant)
            found = await self._engine.submit(proposal, lambda _progress: None)
        except KernelForgeError as error:
            self.outcomes[type(error).__name__] += 1
            self._look(text, str(error))
        except Exception as error:  # noqa: BLE001  what this is looking for
            self.failures.append((f"{type(error).__name__}: {error}", text, ""))
        else:
            self.outcomes[str(found.verdict.status)] += 1
            said = codec.dumps(found.verdict)
            self._look(text, json.loads(json.dumps(said)))

    def _look(self, text, said):
        # What the author wrote may be quoted: only what the engine adds is a leak.
        for leak in LEAKS.finditer(said):
            if leak[0] not in text:
                self.failures.append((f"leak: {leak[0]}", text, said))
                return

    async def casts(self, rng, count, path):
        """Read `count` mutated casts, and do with those that are read all that can be done."""
        broken, whole = self._folder / "broken.cast", manifest.read(path)
        for _ in range(count):
            data = mutated_cast(rng, path)
            broken.write_bytes(data)
            try:
                await self._engine.inspect_cast(broken)
                _used(broken, whole)
                self.outcomes["cast read"] += 1
            except CastRejected as error:
                self.outcomes["cast rejected"] += 1
                self._look(str(broken), str(error))
            except Exception as error:  # noqa: BLE001
                self.failures.append((f"cast: {type(error).__name__}: {error}", data.hex(), ""))


async def fuzzed(folder, *, candidates, casts, seed, sources, cast):
    """Everything on an engine of its own; `cast` is one to mutate."""
    (folder / "model.py").write_text(MODEL)
    async with Engine.open(resolve(folder / "project")) as engine:
        request = CaptureRequest(model=f"{folder / 'model.py'}:make_model")
        capture = await engine.capture(request, lambda _progress: None)
        cards = await engine.cards(capture.id)
        variant = next(c for c in cards if c.operator == "aten::relu").variants[0].id
        fuzz = Fuzz(engine, variant, folder)
        await fuzz.candidates(random.Random(seed), candidates, sources)
        await fuzz.casts(random.Random(seed), casts, cast)
    return fuzz


def children():
    """The processes below this one."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in found]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--candidates", type=int, default=10_000)
    options.add_argument("--casts", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--sources", type=float, default=0.05)
    options.add_argument("--cast", type=Path, required=True)
    given = vars(options.parse_args())
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(lambda: fuzzed(Path(folder), **given))
    report = {
        "outcomes": dict(found.outcomes),
        "failures": found.failures[:20],
        "failed": len(found.failures),
        "left_processes": len(children()),
        "seconds": round(time.monotonic() - started),
    }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    raise SystemExit(1 if found.failures or children() else 0)


if __name__ == "__main__":
    main()
