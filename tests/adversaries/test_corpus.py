"""Every candidate of the corpus through the engine: no bad one accepted, no honest one refused."""

import importlib.util
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import NodeInvalid
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.records import Variant
from kernelforge_server.settings import resolve


def _corpus():
    path = Path(__file__).with_name("corpus.py")
    spec = importlib.util.spec_from_file_location("adversary_corpus", path)
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    if not hasattr(module, "candidates"):
        spec.loader.exec_module(module)
    return module


corpus = _corpus()
MANIFEST = corpus.manifest()
FOLDER = Path(__file__).parent
BACKENDS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
AT_ONCE = 3  # one is judged while the next ones are built


def silent(_progress):
    pass


@dataclass
class Bench:
    """An engine with the model captured, and what it said of the candidates."""

    engine: Engine
    backend: str
    variants: list[Variant]
    found: dict[str, str] = field(default_factory=dict)

    def variant(self, target):
        wanted = MANIFEST["targets"][target]
        (variant,) = [v for v in self.variants if v.target and _fits(v, wanted)]
        return variant

    async def judge(self, candidate):
        """The status that a candidate ends with."""
        variant = self.variant(candidate.target)
        proposal = Proposal(text=candidate.text, variant_id=variant.id)
        submission = await self.engine.submit(proposal, silent)
        result = str(submission.verdict.status)
        if candidate.timed and submission.node is not None:
            try:
                await self.engine.benchmark(submission.node.id, silent)
            except NodeInvalid:
                node = await self.engine.node(submission.node.id)
                result = f"{corpus.CAUGHT_LATE}{node.verdict.status}"
        self.found[candidate.file] = result


def _fits(variant, wanted):
    first = variant.call.inputs[0]
    shown = f"{first.dtype}{list(first.shape)}"
    family = variant.family is not None
    return variant.call.name == wanted["operator"] and (
        family if wanted.get("family") else not family and shown == wanted["input"]
    )


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module", params=BACKENDS)
async def bench(request, tmp_path_factory):
    project = tmp_path_factory.mktemp("corpus")
    model = f"{FOLDER / 'model.py'}:make_model"
    async with Engine.open(resolve(project)) as engine:
        capture = await engine.capture(CaptureRequest(model=model, device=request.param), silent)
        cards = await engine.cards(capture.id)
        yield Bench(engine, request.param, [v for c in cards for v in c.variants])


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("target", MANIFEST["targets"])
async def test_no_bad_candidate_is_accepted_and_no_honest_one_is_refused(bench, target, request):
    chosen = [c for c in corpus.candidates(bench.backend) if c.target == target]
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def judge(candidate):
        async with limit:
            await bench.judge(candidate)

    async with anyio.create_task_group() as group:
        for candidate in chosen:
            group.start_soon(judge, candidate)
    if request.config.getoption("--store-results", default=False):
        corpus.store(bench.backend, bench.found)
    missed = [c for c in chosen if not c.is_right(bench.found[c.file]) and not c.known]
    wrong = {c.file: bench.found[c.file] for c in missed}
    print(target, dict(Counter((c.kind, bench.found[c.file]) for c in chosen)))
    assert wrong == {}


def test_every_row_of_the_catalogue_has_a_candidate_or_a_reason():
    rows = MANIFEST["rows"]
    written = {row for entry in MANIFEST["bad"].values() for row in entry["rows"]}
    assert {int(number) for number in rows} == set(range(1, 94))
    for number, row in rows.items():
        assert (int(number) in written) != ("impossible" in row), (number, row)


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_the_manifest_names_the_files_there_are(kind):
    folder = FOLDER / kind
    found = {str(p.relative_to(folder).with_suffix("")) for p in folder.glob("*/*.c*")}
    assert {name.split("/")[0] for name in found} <= set(MANIFEST["targets"])
    if kind == "bad":
        assert found == set(MANIFEST["bad"])
    assert len(found) >= 40
