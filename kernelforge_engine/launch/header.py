"""The launch header: TOML in the first comment of a candidate, parsed into a LaunchPlan."""

import re
import tomllib
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelforge_engine.calls import Backend
from kernelforge_engine.codec import sha256
from kernelforge_engine.launch.expression import ExpressionError, parse
from kernelforge_engine.plans import MAX_SOURCE_BYTES, Launch, LaunchPlan, Source, Workspace

MAX_LAUNCHES = 64
HEADER = re.compile(r"\A\s*/\*\s*kernelforge\b(.*?)\*/", re.DOTALL)
KERNEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:<[A-Za-z0-9_:, <>]+>)?")
ARGUMENT = re.compile(r"(?:(?:in|out|ws)\d+|(?:i32|i64|f32|f64):.+)", re.DOTALL)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# What may stand between the mark of a kernel and its name, parentheses of an attribute included.
MARKED = re.compile(r'(?:extern\s*"C"|\b__global__)(?=[\s{])')
ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
FUNCTION = re.compile(r"[^(){};]*?\b([A-Za-z_]\w*)\s*\(")
MAX_DECLARED, MAX_NAMED = 400, 8  # characters of a declaration, names in one message

Size = int | str


class SourceRejected(ValueError):
    """A candidate that is refused before it is built; the text says what to change."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Launch(_Strict):
    kernel: str
    args: list[str] = Field(default_factory=list, max_length=64)
    grid: list[Size] | None = Field(default=None, min_length=1, max_length=3)
    block: list[Size] | None = Field(default=None, min_length=1, max_length=3)
    shared: Size = 0
    cluster: list[Size] | None = Field(default=None, min_length=1, max_length=3)
    cooperative: bool = False


class _Workspace(_Strict):
    bytes: Size
    init: str | None = Field(default=None, pattern="^zero$")


class _Output(_Strict):
    init: str = Field(pattern="^zero$")


class _Header(_Strict):
    let: dict[str, Size | float] = Field(default_factory=dict, max_length=64)
    launch: list[_Launch] = Field(min_length=1, max_length=MAX_LAUNCHES)
    workspace: dict[str, _Workspace] = Field(default_factory=dict, max_length=16)
    output: dict[str, _Output] = Field(default_factory=dict, max_length=16)


def parse_source(text: str, backend: Backend) -> Source:
    """A candidate file as a Source.

    Raises:
        SourceRejected: the header is missing, is not TOML, says something that is not allowed, or
            launches a kernel that the source does not have.
    """
    if len(text.encode()) > MAX_SOURCE_BYTES:
        raise SourceRejected(f"the source is larger than {MAX_SOURCE_BYTES} bytes")
    found = HEADER.match(text)
    if not found:
        raise SourceRejected("the file must begin with a /* kernelforge ... */ launch header")
    plan = _plan(found[1], backend)
    _refuse_undefined(plan, text[found.end() :])
    return Source(text=text, backend=backend, plan=plan, digest=sha256(text))


def _refuse_undefined(plan: LaunchPlan, code: str) -> None:
    """A kernel that the code never names; one that a macro pastes together is the compiler's."""
    if "##" in code:
        return
    words = set(NAME.findall(code))
    for position, launch in enumerate(plan.launches):
        if launch.kernel.partition("<")[0] not in words:
            defined = ", ".join(_defined(code)[:MAX_NAMED])
            raise SourceRejected(
                f"launch[{position}].kernel {launch.kernel!r} is not defined in the source"
                + (f"; it defines: {defined}" if defined else "")
            )


def _defined(code: str) -> list[str]:
    """Names that look like kernels, in the order of the source."""
    code = COMMENT.sub(" ", code)
    after = (code[mark.end() : mark.end() + MAX_DECLARED] for mark in MARKED.finditer(code))
    found = (FUNCTION.match(ATTRIBUTE.sub(" ", text)) for text in after)
    return list(dict.fromkeys(match[1] for match in found if match))


def _plan(toml: str, backend: Backend) -> LaunchPlan:
    try:
        header = _Header.model_validate(tomllib.loads(toml))
    except tomllib.TOMLDecodeError as error:
        raise SourceRejected(f"the launch header is not TOML: {error}") from error
    except ValidationError as error:
        raise SourceRejected(f"the launch header is not accepted: {_first(error)}") from error
    for name in header.let:
        if not NAME.fullmatch(name):
            raise SourceRejected(f"let.{name} is not a plain name")
    return LaunchPlan(
        lets=tuple((n, _checked(f"let.{n}", v)) for n, v in header.let.items()),
        launches=tuple(_launch(i, entry, backend) for i, entry in enumerate(header.launch)),
        workspaces=_workspaces(header.workspace),
        zeroed_outputs=tuple(_numbered("output", "out", n) for n in header.output),
    )


def _first(error: ValidationError) -> str:
    detail = error.errors()[0]
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"unknown key {where}"
    return f"{where}: {detail['msg']}"


def _launch(position: int, entry: _Launch, backend: Backend) -> Launch:
    where = f"launch[{position}]"
    if not KERNEL.fullmatch(entry.kernel):
        raise SourceRejected(f"{where}.kernel {entry.kernel!r} is not a function name")
    if backend == "cpu":
        _refuse_cuda_keys(where, entry)
    elif entry.grid is None or entry.block is None:
        raise SourceRejected(f"{where} needs grid and block on CUDA")
    return Launch(
        kernel=entry.kernel,
        args=tuple(_argument(f"{where}.args", a) for a in entry.args),
        grid=_triple(f"{where}.grid", entry.grid or [1]),
        block=_triple(f"{where}.block", entry.block or [1]),
        shared=_checked(f"{where}.shared", entry.shared),
        cluster=_triple(f"{where}.cluster", entry.cluster) if entry.cluster else None,
        cooperative=entry.cooperative,
    )


def _refuse_cuda_keys(where: str, entry: _Launch) -> None:
    given = [k for k in ("grid", "block", "cluster") if getattr(entry, k) is not None]
    given += [k for k in ("shared", "cooperative") if getattr(entry, k)]
    if given:
        raise SourceRejected(
            f"{where}.{given[0]} exists on CUDA only; remove it for the cpu backend"
        )


def _argument(where: str, text: str) -> str:
    if not ARGUMENT.fullmatch(text):
        raise SourceRejected(
            f"{where}: {text!r} is neither a buffer (in0, out0, ws0) nor i32: i64: f32: f64: with "
            "an expression"
        )
    if ":" in text:
        _checked(where, text.split(":", 1)[1])
    return text


def _triple(where: str, sizes: list[Size]) -> tuple[str, str, str]:
    x, y, z = [_checked(where, s) for s in [*sizes, 1, 1][:3]]
    return x, y, z


def _checked(where: str, expression: Size | float) -> str:
    text = str(expression)
    try:
        parse(text)
    except ExpressionError as error:
        raise SourceRejected(f"{where}: {text!r}: {error}") from error
    return text


def _numbered(table: str, prefix: str, name: str) -> int:
    if not re.fullmatch(rf"{prefix}\d{{1,3}}", name):
        raise SourceRejected(f"[{table}.{name}] must be called {prefix}0, {prefix}1, ...")
    return int(name.removeprefix(prefix))


def _workspaces(table: Mapping[str, _Workspace]) -> tuple[Workspace, ...]:
    numbers = sorted(_numbered("workspace", "ws", name) for name in table)
    if numbers != list(range(len(numbers))):
        raise SourceRejected("workspaces must be numbered ws0, ws1, ... without a gap")
    return tuple(
        Workspace(
            name=f"ws{i}",
            bytes=_checked(f"workspace.ws{i}.bytes", table[f"ws{i}"].bytes),
            zero=table[f"ws{i}"].init == "zero",
        )
        for i in numbers
    )
