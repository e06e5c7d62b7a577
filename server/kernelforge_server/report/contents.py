"""From the records of a project to the sections of its report."""

from collections.abc import Callable, Iterator

from kernelforge_engine.measurements import Comparison, Measured
from kernelforge_engine.records import Capture
from kernelforge_engine.reporting import ProjectReport
from kernelforge_server.report import figures
from kernelforge_server.report.costs import cost_section, win_figure
from kernelforge_server.report.models import model_section
from kernelforge_server.report.sheets import Page, Section, Tile, Tone
from kernelforge_server.report.targets import cards_section, left_section, short
from kernelforge_server.report.trees import trees_section
from kernelforge_tools.findings import BOUND, doubt, unseen
from kernelforge_tools.load import is_busy
from kernelforge_tools.wording import counted, outcome

TONES: dict[str, Tone] = {"faster": "good", "slower": "bad"}
SMALL_PRINT = (
    "Speed-up: eager's time over that of the kernel, or the model's without the cast over that "
    "with it, both interleaved in one process. In parentheses the interval that it lies in, at "
    "99 % or more; faster means that all of it is above 1x.",
    "Label: a generated kernel does all of the work itself, a wrapper hands it to a library, a "
    "fallback is eager.",
    "Head-room: eager's time over the least that memory traffic and arithmetic need on this "
    "machine. Whole model at most: Amdahl's bound if the kernel took that least time.",
)


def page(found: ProjectReport, redact: Callable[[str], str]) -> Page:
    """The report, with every text as it may leave this machine."""
    capture = found.capture
    result = _result(found)
    headline, tone = _headline(found, result)
    sections = (
        model_section(found, redact),
        cards_section(found),
        trees_section(found, redact),
        left_section(found),
        cost_section(found, redact),
        Section(name="words", heading="How to read this", small=SMALL_PRINT),
    )
    made = f"Kernel Forge {found.version}; records up to {figures.when(found.recorded_at)}."
    return Page(
        title=redact(short(capture.model)),
        headline=headline,
        tone=tone,
        facts=tuple((name, redact(text)) for name, text in _facts(found)),
        warnings=tuple(redact(text) for text in _warnings(found)),
        tiles=tuple(_tiles(found, result)),
        sections=tuple(section for section in sections if section is not None),
        made=made,
    )


def _result(found: ProjectReport) -> Comparison | None:
    """What the captured model was measured to do last with a cast, in eager mode if it was."""
    for one in found.measured:
        if _is_of(one, found.capture) and one.cast_sha256 and one.measurement.rows:
            return one.measurement.rows[0]
    return None


def _is_of(one: Measured, capture: Capture) -> bool:
    return (one.model, one.device) == (capture.model, capture.device)


def _headline(found: ProjectReport, result: Comparison | None) -> tuple[str, Tone]:
    if result is not None:
        said = outcome(result.low, result.high)
        if said == "no clear difference":
            return "The whole model: no clear difference with its new kernels", ""
        factor = result.speedup if said == "faster" else 1 / result.speedup
        return f"The whole model runs {figures.times(factor)} {said}", TONES[said]
    faster = sum(target.is_faster for target in found.targets)
    if faster:
        found_faster = f"{counted(faster, 'kernel')} {'is' if faster == 1 else 'are'} faster"
        return f"{found_faster}; the whole model was not measured yet", ""
    return "Nothing was found faster than eager yet", ""


def _facts(found: ProjectReport) -> Iterator[tuple[str, str]]:
    capture = found.capture
    yield "Model", capture.model
    yield "Inputs", ", ".join(capture.inputs) or "the model's own"
    if loaded := _loaded(capture):
        yield "Loaded", loaded
    yield "Device", f"{capture.device_name} ({capture.device}), torch {capture.torch_version}"
    yield "Captured", f"{capture.id}, {figures.when(capture.created_at)}{_others(found)}"
    model = f"one run {figures.time(capture.wall_us)}, " if capture.wall_us else ""
    yield "Time", f"{model}its operators {figures.time(capture.busy_us)}"
    if capture.bound and not capture.is_disturbed:
        yield "Held back", f"{capture.bound}. {BOUND[capture.bound]}"
    operators = sum(not one.card.is_region for one in found.cards)
    seen = f"{capture.calls:,} calls of {counted(operators, 'operator')}"
    if capture.coverage is not None:
        seen += f", {capture.coverage:.1%} of the calls of an unobserved run"
    yield "Recorded", seen


def _loaded(capture: Capture) -> str:
    said = [f"in {capture.dtype}"] if capture.dtype else []
    said += ["with random weights"] if capture.random_weights else []
    if capture.generate_tokens:
        said.append(f"generating {counted(capture.generate_tokens, 'token')}")
    return ", ".join(said)


def _others(found: ProjectReport) -> str:
    told = [f"{n} {word}" for n, word in ((found.newer, "newer"), (found.older, "older")) if n]
    return f"; the project has {' and '.join(told)}" if told else ""


def _warnings(found: ProjectReport) -> Iterator[str]:
    capture = found.capture
    if why := doubt(capture):
        yield why
    load = capture.load_per_thread
    if capture.device == "cpu" and load is not None and is_busy(load, 1):
        yield (
            f"The machine was busy when the model was captured ({load:.1f} processes for each "
            "thread): shares, gains and what holds the model back may be wrong."
        )
    if capture.error:
        yield f"The model raised {capture.error}; only what it ran before that was recorded."
    if missing := unseen(capture):
        yield f"An unobserved run also made calls that were not recorded: {missing}."
    if capture.level == "decomposed":
        yield "The forward needs autograd, so operators were recorded in their parts."
    if capture.output_drift:
        yield f"Being observed moved the model's output by up to {capture.output_drift:.2g}."


def _tiles(found: ProjectReport, result: Comparison | None) -> Iterator[Tile]:
    if result is not None:
        said = outcome(result.low, result.high)
        yield Tile(
            name="Whole model",
            figure=figures.times(result.speedup),
            aside=f"{figures.bounds(result.low, result.high)}, {result.mode}: {said}",
            tone=TONES.get(said, ""),
        )
    targets = list(found.targets)
    tried = [target for target in targets if target.candidates]
    faster = sum(target.is_faster for target in tried)
    yield Tile(
        name="Kernels faster",
        figure=str(faster),
        aside=f"of {counted(len(tried), 'target')} tried, {len(targets)} in all",
        tone="good" if faster else "",
    )
    refused = sum(len(target.attempts) for target in targets)
    candidates = sum(target.candidates for target in targets)
    yield Tile(
        name="Candidates",
        figure=str(candidates),
        aside=f"{candidates - refused} valid, {refused} refused",
    )
    spent = found.spending
    devices = figures.device(spent.device_seconds)
    if spent.reports:
        aside = f"{figures.tokens(spent)} tokens; device: {devices}"
        yield Tile(name="Spent", figure=figures.cost(spent), aside=aside)
    else:
        yield Tile(name="Device time", figure=devices, aside="no tokens were reported")
    yield Tile(name="Per whole-model win", figure=win_figure(spent), aside=_wins(found))


def _wins(found: ProjectReport) -> str:
    said = counted(found.spending.wins, "win")
    return f"{said}, and {found.by_library} of the library" if found.by_library else said
