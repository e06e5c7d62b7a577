"""What the PTX of a CUDA candidate says it does: special registers it reads, variables it writes.

PTX is the layer that can tell, and it is the very text that the cubin beside it was assembled from.
Source text cannot (macros, headers), and neither can the cubin: there a `__device__ const` table, a
counter and a string lie in the same sections, constness is gone, and the number of a launch
(`%gridid`) is an ordinary load from a constant bank. In PTX variables are named wherever they are
used, inline assembly stands as it was written, special registers have no other names, and ptxas has
neither macros nor a preprocessor, all tried with CUDA 13.0.

Whether a variable can be written is followed through registers within each function: what adds to
an address keeps it, a load from it ends it, and anything else counts as a way to write. That also
refuses what is harmless but hard to see, such as a comparison of addresses or one kept in memory.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# A string holds no comment and a comment no string, so whichever begins first counts.
NOISE = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"[^"\n]*"', re.DOTALL)
# What may stand before an instruction or a declaration and ends without a semicolon.
LEAD = re.compile(
    r"""(?: [\s{}]+
        | [\w$%]+\s*:(?!:)
        | \.loc\s+\d+\s+\d+\s+\d+(?:\s*,\s*function_name\s+[\w$]+(?:\s*\+\s*\d+)?\s*,
          \s*inlined_at\s+\d+\s+\d+\s+\d+)?
        | \.file\s+\d+\s+""(?:\s*,\s*\d+\s*,\s*\d+)?
        | \.version\s+[\d.]+ | \.target\s+[\w, ]+ | \.address_size\s+\d+ )""",
    re.VERBOSE,
)
GUARD = re.compile(r"@!?\s*[\w$%]+\s*")
NAME = re.compile(r"(?<![\w.$%])[A-Za-z_$%][\w$]*")
INITIALISER = re.compile(r"\{[^{}]*\}")
FUNCTION = re.compile(r"\.(?:entry|func)\b")
VARIABLE = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const)(?![\w.])")
REGISTERS = re.compile(r"\.reg\b[^;]*")
SPECIAL = re.compile(r"%[A-Za-z_]\w*")
REGISTER = re.compile(r"(?P<name>%[A-Za-z_]\w*)(?P<many>\s*<)?")
DIGITS = "0123456789"
# Where a thread is and how much there is of everything; %envreg1 and 2 lead to the barrier that
# cooperative groups use for a whole grid.
PLACES = (
    "tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid clusterid nclusterid cluster_ctaid "
    "cluster_nctaid cluster_ctarank cluster_nctarank is_explicit_cluster lanemask_eq lanemask_le "
    "lanemask_lt lanemask_ge lanemask_gt total_smem_size aggr_smem_size dynamic_smem_size "
    "reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap "
    "reserved_smem_offset_0 reserved_smem_offset_1 envreg1 envreg2"
)
CLOCK = re.compile(r"%(?:clock|globaltimer)\w*")
# Of the launch or of the device, whoever declares a register of that name.
TELLING = re.compile(
    rf"{CLOCK.pattern}|%pm\d+(?:_64)?|%gridid|%current_graph_exec|%envreg(?:[03-9]|\d\d+)"
)
# How the waiting of cuda::barrier and its kin gets longer: they read a clock, and by the line that
# the compiler notes before it, it is theirs.
WAITS = "cuda/std/__thread/threading_support.h"
PLACE = re.compile(
    r'^\s*\.file\s+(?P<file>\d+)\s+"(?P<path>[^"]*)"'
    r"|^\s*\.loc\s+[^\n]*?(?:inlined_at\s+(?P<caller>\d+)\s[^\n]*)?$"
    r"|(?P<clock>%globaltimer\b)",
    re.MULTILINE,
)
LOADS = frozenset({"ld", "ldu", "prefetch", "prefetchu", "cp.async.ca", "cp.async.cg"})
ADDITIONS = frozenset({"mov", "add", "sub", "mad", "cvta", "selp"})
KIND = re.compile(r"st\.param|cp\.async\.c[ag](?=\.shared)|\w*")

Variables = Mapping[str, frozenset[str]]  # with the other ones whose addresses they hold


@dataclass(frozen=True, kw_only=True)
class Findings:
    """`special`: registers read that tell more than a place; `written`: variables of the module
    that may be written."""

    special: tuple[str, ...]
    written: tuple[str, ...]


@dataclass(frozen=True)
class _Statement:
    """An instruction: its kind, its first operand, and the other ones."""

    kind: str
    target: frozenset[str]
    source: frozenset[str]


def findings(text: str, reporting: frozenset[str]) -> Findings:
    """What a module does that a candidate must not.

    `reporting` are functions of the driver that may be given the address of a text.
    """
    plain = NOISE.sub(lambda found: '""' if found[0].startswith('"') else " ", text)
    declared: dict[str, frozenset[str]] = {}
    functions: list[list[str]] = [[]]
    for statement in _statements(plain):
        if VARIABLE.match(statement):
            declared |= _declared(statement)
            continue
        if statement.startswith(".") and FUNCTION.search(statement):
            functions.append([])
        functions[-1].append(statement)
    variables = {name: held & declared.keys() for name, held in declared.items()}
    written: set[str] = set()
    for function in functions:
        if any(name in variables for part in function for name in NAME.findall(part)):
            written |= _Walk(variables, reporting).written([_parsed(part) for part in function])
    return Findings(special=_special(plain), written=tuple(sorted(written)))


def only_waits(text: str) -> bool:
    """Whether each reading of %globaltimer in a module is one of WAITS, as its line numbers say;
    assembly in a source can forge those."""
    files = {m["file"]: m["path"] for m in PLACE.finditer(text) if m["file"]}
    caller, readings = "", []
    for found in PLACE.finditer(text):
        if found["clock"]:
            readings.append(files.get(caller, "").endswith(WAITS))
        elif not found["file"]:
            caller = found["caller"] or ""
    return all(readings)


def _statements(text: str) -> Iterator[str]:
    for part in text.split(";"):
        start = 0
        while lead := LEAD.match(part, start):
            start = lead.end()
        if statement := part[start:].strip():
            yield statement


def _declared(statement: str) -> dict[str, frozenset[str]]:
    """The variables of a declaration, with the names that their initial values hold."""
    declared, _, value = statement.partition("=")
    names = NAME.findall(declared) + NAME.findall(INITIALISER.sub(" ", value))
    return dict.fromkeys(names, frozenset(NAME.findall(value)))


def _parsed(statement: str) -> _Statement:
    guard = GUARD.match(statement)
    text = statement[guard.end() :] if guard else statement
    operation, *rest = text.split(maxsplit=1)
    operands, depth, end = rest[0] if rest else "", 0, None
    for position, character in enumerate(operands):
        depth += {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            end = position
            break
    kind = KIND.match(operation)
    first, others = operands[:end], operands[end:] if end is not None else ""
    return _Statement(
        kind[0] if kind else "", frozenset(NAME.findall(first)), frozenset(NAME.findall(others))
    )


class _Walk:
    """What the registers of one function may hold, as far as it is an address of a variable."""

    def __init__(self, variables: Variables, reporting: frozenset[str]) -> None:
        self._variables, self._reporting = variables, reporting
        self._held: dict[str, frozenset[str]] = {}
        self._passed: frozenset[str] = frozenset()  # to the next call

    def written(self, statements: list[_Statement]) -> frozenset[str]:
        """The variables that the function may write, when nothing new comes up any more."""
        while True:
            before = dict(self._held)
            found = frozenset().union(*(self._step(s) for s in statements), self._passed)
            self._passed = frozenset()
            if self._held == before:
                return found

    def _step(self, statement: _Statement) -> frozenset[str]:
        """Follow one instruction; the variables that it may write."""
        kind, none = statement.kind, frozenset[str]()
        lost, coming = none, self._addresses(statement.source)
        if kind == "call":
            names = statement.target | statement.source
            lost, self._passed = none if names & self._reporting else self._passed, none
        if kind in ADDITIONS:
            self._hold(statement.target, coming)
        elif kind in LOADS:
            self._hold(statement.target, none.union(*(self._variables[v] for v in coming)))
            if kind.startswith("cp"):
                lost = self._addresses(statement.target)
        elif kind == "st.param":
            self._passed |= coming | self._addresses(statement.target)
        else:
            lost |= coming | self._addresses(statement.target)
        return lost

    def _hold(self, registers: frozenset[str], addresses: frozenset[str]) -> None:
        if addresses:
            for name in registers:
                self._held[name] = self._held.get(name, frozenset()) | addresses

    def _addresses(self, names: frozenset[str]) -> frozenset[str]:
        own = names & self._variables.keys()
        return own.union(*(self._held[name] for name in names if name in self._held))


def _special(text: str) -> tuple[str, ...]:
    places = set(PLACES.split())
    single, families = set[str](), set[str]()
    for registers in REGISTERS.findall(text):
        for found in REGISTER.finditer(registers):
            (families if found["many"] else single).add(found["name"])

    def own(name: str) -> bool:
        return name in single or name.rstrip(DIGITS) in families or name[1:] in places

    names = set(SPECIAL.findall(text))
    return tuple(sorted(n for n in names if TELLING.fullmatch(n) or not own(n)))
