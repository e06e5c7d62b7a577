"""Everything the engine can find is explained in one table."""

import ast
from collections.abc import Iterator
from pathlib import Path

from kernelforge_engine import explanations
from kernelforge_engine.records import Outcome, Status
from kernelforge_engine.worker.watching import TOOLS

ROOT = Path(__file__).parent.parent.parent / "kernelforge_engine"
RAISERS = {"wrong", "misplaced"}  # functions whose first argument is the name of a rule


def _rules(tree: ast.AST) -> Iterator[ast.expr]:
    """Every expression that becomes the rule of a finding."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (k.value for k in node.keywords if k.arg == "rule")
            if isinstance(node.func, ast.Name) and node.func.id in RAISERS:
                yield node.args[0]
        if isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            yield from (v for k, v in named if isinstance(k, ast.Constant) and k.value == "rule")


def _emitted() -> set[str]:
    found = set()
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for rule in _rules(tree):
            if isinstance(rule, ast.Constant):
                found.add(rule.value)
            elif isinstance(rule, ast.Name) and rule.id in constants:
                found.add(constants[rule.id])
    return found


def test_every_status_and_outcome_is_explained():
    assert {e.name for e in explanations.STATUSES} == set(Status)
    assert {e.name for e in explanations.OUTCOMES} == set(Outcome)


def test_every_rule_the_engine_can_name_is_explained_and_no_other():
    assert {e.name for e in explanations.RULES} == _emitted() | set(TOOLS)


def test_an_explanation_says_all_there_is_to_say():
    for entry in explanations.EVERY:
        assert all(len(text) > 5 for text in vars(entry).values() if text != entry.name), entry
    assert len(explanations.NAMED) == len(explanations.EVERY)
