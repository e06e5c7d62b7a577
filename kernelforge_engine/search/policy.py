"""The policies by name: which node of a revision tree is revised next.

A policy is a pure function of the tree, so that the same history gives the same choices.
"""

from collections.abc import Callable
from typing import Literal, get_args

from kernelforge_engine.errors import BadOption
from kernelforge_engine.search.rule import Rule, log_ratio, milliseconds
from kernelforge_engine.search.tree import Tree, TreeNode
from kernelforge_engine.search.walks import Beam, Spread, fastest, newest

PolicyName = Literal["spread", "log", "paper", "greedy", "linear", "beam"]
DEFAULT: PolicyName = "spread"  # what tests/benchmarks/policy_study.py found best on the whole
LOG, PAPER = Rule(value=log_ratio), Rule(value=milliseconds)
POLICIES: dict[str, Callable[[Tree], TreeNode]] = {
    "spread": Spread(toll=0.1).choose,
    "log": LOG.choose,
    "paper": PAPER.choose,
    "greedy": fastest,
    "linear": newest,
    "beam": Beam(width=3, branch=2).choose,
}
assert set(POLICIES) == set(get_args(PolicyName))  # noqa: S101  two spellings of one list


def policy(name: str) -> Callable[[Tree], TreeNode]:
    """A policy by name.

    Raises:
        BadOption: there is no such policy.
    """
    if name not in POLICIES:
        *others, last = POLICIES
        accepted = f"{', '.join(others)} or {last}"
        raise BadOption(field="policy", value=name, why="unknown policy", accepted=accepted)
    return POLICIES[name]
