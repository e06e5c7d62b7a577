"""What a source may ask of the host's files, checked before any compiler sees it.

The sandbox keeps a compiler from reading other files, but not from telling whether they exist: for
a file it may not open, `__has_include` is true. A `#line` that names a file makes a compiler quote
that file in its messages. Headers are therefore named plainly, and line directives are refused.

Assembly has no place in a cpu candidate, whose intrinsics do not need it. A macro can still paste
the word together: what was built is audited as well.
"""

import re
from collections.abc import Iterator

from kernelforge_engine.calls import Backend

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
END_OF_LINE = re.compile(r"\r\n?")  # a lone carriage return ends a line for g++ as well
SPLICE = re.compile(r"\\[ \t\f\v]*\n")
# Longest forms first: a quote inside one of these begins nothing. What is not closed runs to the
# end, so that every character is looked at once.
TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<raw>\b(?:u8|u|U|L)?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<number>\.?\d(?:'?[\w.])*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<char>'(?:[^'\\\n]|\\.)*')
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t\f\v]*\#[ \t\f\v]*(?P<name>\w*)(?P<rest>[^\n]*)", re.MULTILINE)
HEADER = re.compile(r"""\s*(?:<[\w./+-]+>|"[\w./+-]+")\s*""")
PROBE = re.compile(r"\b__has_(?:include|include_next|embed)\b(?P<operand>\s*\([^()\n]*\))?")
ASSEMBLY = frozenset({"asm", "__asm", "__asm__"})
INCLUDES = frozenset({"include", "include_next", "import", "embed"})
CONDITIONS = frozenset({"if", "elif"})
WORD = re.compile(r"[A-Za-z_]\w*")
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
DEFINED = re.compile(r"\bdefined\s*(?:\(\s*\w+\s*\)|\w+)")
HARMLESS = frozenset({
    "__has_include", "__has_include_next", "__has_embed", "__has_attribute",
    "__has_cpp_attribute", "__has_builtin", "__GNUC_PREREQ", "__GLIBC_PREREQ",
})  # fmt: skip


def refusal(text: str, backend: Backend) -> str | None:
    """Why this source is not compiled, or None."""
    if CONTROL.search(text):
        return "the source has control characters"
    code = _code(text)
    if backend == "cpu" and any(t["word"] in ASSEMBLY for t in TOKEN.finditer(code)):
        return "asm is not allowed in a cpu candidate: use intrinsics, such as <immintrin.h>"
    return next(_problems(code), None)


def has_assembly(text: str) -> bool:
    """Whether a source has the word, or could paste it together."""
    code = _code(text)
    return "##" in code or any(t["word"] in ASSEMBLY for t in TOKEN.finditer(code))


def _code(text: str) -> str:
    """The source without comments and line splices, digraphs written out."""

    def kept(found: re.Match[str]) -> str:
        if found["comment"]:
            return " "
        # The content of a raw string is no code, and it may hold lines that look like directives.
        return '""' if found["raw"] else found[0]

    text = SPLICE.sub("", END_OF_LINE.sub("\n", text))
    return TOKEN.sub(kept, text).replace("%:", "#")


def _problems(code: str) -> Iterator[str]:
    for directive in DIRECTIVE.finditer(code):
        name, rest = directive["name"], directive["rest"]
        if name in INCLUDES and not _plain(rest):
            yield f"#{name} must name a header plainly, by a relative path without `..`"
        if name == "line" or name.isdigit():
            yield "#line is not allowed: messages count the lines of your file as they are"
        if name == "pragma" and re.search(r"\b(?:dependency|pch_preprocess)\b", rest):
            yield "this #pragma names a file, which is not allowed"
    for probe in PROBE.finditer(code):
        operand = (probe["operand"] or "").strip()
        if not operand or not _plain(operand[1:-1]):
            yield "__has_include must name a header plainly, by a relative path without `..`"
    if not _conditions_are_plain(code):
        yield "a condition (#if) may use constants, `defined` and macros, but no call of a macro"


def _plain(operand: str) -> bool:
    if not HEADER.fullmatch(operand):
        return False
    path = operand.strip()[1:-1]
    return not path.startswith("/") and ".." not in path.split("/")


def _conditions_are_plain(code: str) -> bool:
    """Whether no condition calls a macro, itself or through a macro of the file.

    A call could paste the name `__has_include` together, even by a macro of a system header.
    """
    directives = list(DIRECTIVE.finditer(code))
    bodies: dict[str, str] = {}
    for directive in directives:
        if directive["name"] == "define" and (name := WORD.match(directive["rest"].strip())):
            body = directive["rest"].strip()[name.end() :]
            # With parameters the first parenthesis follows at once, and the use itself is a call.
            bodies[name[0]] = bodies.get(name[0], "") + " " + body
    pending = [d["rest"] for d in directives if d["name"] in CONDITIONS]
    while pending:
        text = DEFINED.sub("", pending.pop())
        if "##" in text or {call[1] for call in CALL.finditer(text)} - HARMLESS:
            return False
        pending += [bodies.pop(word) for word in set(WORD.findall(text)) if word in bodies]
    return True
