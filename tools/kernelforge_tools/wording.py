"""Words that both doors use: counts, what was left out, compiler logs, and what a term means."""

import re
from collections.abc import Mapping

from kernelforge_engine.calls import Json
from kernelforge_engine.exchanges import Kept
from kernelforge_engine.measurements import Comparison

LOG_LINES = 12
BRIEF_CHARS = 48
OWN = ("candidate.", "launch[")  # how a compiler names the candidate's text and launch header
# Complaints about names that the engine adds, and about templates that use them.
FOLLOWS = re.compile(r"kf_|^launch\[.*template argument")
TERMS = {
    "T1": "the error's energy (its root mean square) against what eager's own error allows",
    "T1 per block": "T1 on parts of the output, so that one bad part cannot hide",
    "T2": "the worst single element against what eager's own worst error allows",
    "T2 per binade": "every element against the worst that eager does on elements of its size",
    "T3": "16-bit results must be rounded, not cut off: they may not lean to one side",
    "T4": "float32 results must use the whole mantissa as often as eager's do",
    "selection": "a place holds the value that eager selected; sort and topk name none twice",
    "class mask": "NaN and infinities must be where eager or float64 has them",
    "exact": "nothing is rounded here, so results must equal eager's bit for bit",
    "approximate": "errors are measured against float64 and scaled by eager's own error",
    "isolation A": "candidates ran in a confined process on the GPU",
    "isolation C": "candidates ran as native code in a confined process on the CPU",
    "quick": "four families of draws, for a fast answer",
    "full": "the captured values, then one draw of every family that means something here",
    "promotion": "three draws of every family, repeats that must agree bit for bit, sanitizers",
    "rms_error_over_bound": "T1: how much of what is allowed was used, at most; 1 is the limit",
    "error_over_bound": "T2: the same of the element nearest to its bound",
    "margin": "a win needs a lower end of 1 + margin, and of 1 + 5 margins where times scatter; it "
    "follows from how eager differs from itself here",
    "control": "eager against itself, between the comparisons",
    "dropped": "quartets left out because others took the processor",
    "attempt": "the more is tried on a variant, the surer a win must be: of many, one is lucky",
    "scope K": "the kernels alone were timed, on the device's clock",
    "scope O": "the whole operator call was timed, on the host's clock",
}
TAGGED = ("isolation", "scope")
PLAIN = ("rule", "class", "policy")
USED = ("rms_error_over_bound", "error_over_bound")  # of the error that is allowed
KEYS = (*USED, "margin", "control", "dropped", "attempt")
FALLBACKS = {
    "guard": "not covered by the cast (other shapes, strides, dtypes or arguments)",
    "autograd": "gradients are recorded",
    "overlap": "its tensors overlap in memory",
    "key_set": "traced, transformed, or a tensor subclass",
    "unsupported_argument": "an argument that a cast cannot check",
    "device": "not loaded on that device",
    "first_call": "the first of each instance runs the model's own code, to compare what it does",
    "program": "a region did something else than what was judged",
    "hooks": "a module inside the region has hooks",
    "changing": "the region's attributes change from call to call",
    "compiled": "compiled code that holds the region differently",
}


def rounded(value: float) -> float:
    """A measurement with the four digits it is good for."""
    return float(f"{value:.4g}")


def number_text(value: float) -> str:
    """A measurement in words: its digits without an exponent."""
    return f"{rounded(value):.12g}"


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 kernel, 2 kernels."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def outcome(low: float, high: float) -> str:
    """What the interval of a speed-up says about a whole model."""
    if low > 1:
        return "faster"
    return "slower" if high < 1 else "no clear difference"


def saving_words(row: Comparison) -> str:
    """What the kernels should save of a run, beside what the model saved."""
    found = row.saving
    words = (
        f"Of a run the kernels should save {number_text(found.predicted_us)} us by their own "
        f"timings; the model saved {number_text(found.measured_us)} us "
        f"({number_text(found.low_us)} to {number_text(found.high_us)})"
    )
    if found.flag:
        words += f", {found.flag}"
    if found.untimed_hits:
        words += f"; {counted(found.untimed_hits, 'call')} ran at a size that was not timed"
    most = "no bound" if found.ceiling is None else f"{found.ceiling:.2f}x if they took no time"
    return f"{words}. Eager's part of a run for these calls is {found.share:.1%}: {most}."


def drift_words(row: Comparison) -> list[str]:
    """What the drift of logits, of generated tokens and of pictures came to."""
    words = []
    if row.logits:
        words.append(
            f"Logits: a divergence of {row.logits.kl_nats:.2g} nats, and at "
            f"{row.logits.same_token:.2%} of {row.logits.positions} positions the likeliest token "
            "is the same."
        )
    if row.generation and row.generation.same_token is not None:
        made = counted(row.generation.tokens, "generated token")
        words.append(f"{row.generation.same_token:.2%} of {made} are the same.")
    elif row.generation:
        words.append(f"No generation was compared: {row.generation.failed}.")
    if row.image:
        psnr = row.image.psnr_db
        words.append(
            "Pictures do not differ." if psnr is None else f"Pictures: a PSNR of {psnr:.1f} dB."
        )
    return words


def brief(text: str | None, most: int = BRIEF_CHARS) -> str | None:
    """The beginning of a text, for a row of a list; None where there is no text."""
    if not text or len(text) <= most:
        return text or None
    return f"{text[: most - 3]}..."


def left_out(shown: int, total: int, rest: str) -> str | None:
    """What a shortened list says about itself, or None if nothing is missing."""
    return f"showing {shown} of {total}; {rest} for the rest" if shown < total else None


def shortened_list(names: list[str], most: int) -> list[str]:
    """The first names and how many more there are."""
    more = len(names) - most
    return [*names[:most], f"and {more} more"] if more > 0 else names


def log_lines(log: str, most: int = LOG_LINES) -> list[str]:
    """The lines of a compiler log worth reading first: those on the candidate's own text.

    Errors in what the engine adds follow from an earlier one and are left out where there is one; a
    complaint is shown once.
    """
    complaints = {_complaint(line): line for line in reversed(log.splitlines()) if line.strip()}
    lines = list(reversed(complaints.values()))
    own = [line for line in lines if not FOLLOWS.search(line)] or lines
    start = next((i for i, line in enumerate(own) if line.startswith(OWN)), 0)
    return own[start:][:most]


def _complaint(line: str) -> str:
    """What a line says without where: two places may suffer from the same mistake."""
    return line.partition("error: ")[2] or line


def first_error(log: str) -> str | None:
    """The one line of a log that says most."""
    lines = log_lines(log)
    return next((line for line in lines if "error" in line), lines[0] if lines else None)


def shortened(log: str, rest: str) -> str | None:
    """The lines worth reading first, with where the others are."""
    lines = log_lines(log)
    if not lines:
        return None
    total = sum(1 for line in log.splitlines() if line.strip())
    more = left_out(len(lines), total, rest)
    return "\n".join([*lines, f"({more})"] if more else lines)


def meanings(evidence: Mapping[str, Json]) -> dict[str, str]:
    """The terms that appear in a piece of evidence, each in one clause."""
    named = [str(evidence[key]) for key in PLAIN if key in evidence]
    named += [f"{key} {evidence[key]}" for key in TAGGED if key in evidence]
    named += [key for key in KEYS if key in evidence]
    return {name: TERMS[name] for name in named if name in TERMS}


def evidence_text(evidence: Mapping[str, Json]) -> str:
    """Evidence in one line for people."""
    return ", ".join(f"{k.replace('_', ' ')} {_value(v)}" for k, v in evidence.items())


def _value(value: Json) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{k} {_value(v)}" for k, v in value.items() if v)
    return " ".join(str(v) for v in value) if isinstance(value, list) else str(value)


def kept_text(kept: Kept | None) -> str:
    """What an export added to the user's library, as further sentences; empty where it did not."""
    if kept is None:
        return ""
    number = counted(len(kept.ids), "kernel")
    said = f" {number} went into the library of accepted kernels." if kept.ids else ""
    return f"{said} Not everything could be kept. {kept.refused}" if kept.refused else said
