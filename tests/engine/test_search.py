"""The search rule on plain records."""

import random
from collections import Counter
from math import floor

import pytest

from kernelforge_engine.errors import BadOption
from kernelforge_engine.search.policy import POLICIES, policy, select, widens
from kernelforge_engine.search.tree import Tree, TreeNode

EAGER_US = 100.0


def node(number, parent, visits=1, latency=EAGER_US, pending=0):
    return TreeNode(
        id=f"n{number}",
        parent_id=None if parent is None else f"n{parent}",
        visits=visits,
        pending=pending,
        latency_us=latency,
    )


def grow(rule, latencies):
    """Run the rule alone: each chosen parent gets a child with the next latency."""
    parents, visits, known = {0: None}, Counter({0: 1}), {0: EAGER_US}
    chosen = []
    for number, latency in enumerate(latencies, 1):
        tree = Tree(node(i, parents[i], visits[i], known[i]) for i in parents)
        parent = int(select(tree, rule).id[1:])
        chosen.append(parent)
        parents[number], known[number] = parent, latency
        step = number
        while step is not None:
            visits[step] += 1
            step = parents[step]
    return chosen, visits


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_history_gives_the_same_choices(name):
    rng = random.Random(7)
    latencies = [rng.uniform(5, 200) for _ in range(60)]
    assert grow(policy(name), latencies) == grow(policy(name), latencies)


def test_each_result_adds_one_visit_to_every_ancestor():
    _, visits = grow(policy("paper"), [90.0] * 25)
    assert visits[0] == 26


@pytest.mark.parametrize("name", POLICIES)
def test_no_node_grows_wider_than_the_rule_allows(name):
    rng = random.Random(3)
    latencies = [rng.uniform(5, 200) for _ in range(200)]
    chosen, visits = grow(policy(name), latencies)
    for parent, children in Counter(chosen).items():
        assert children <= floor(visits[parent] ** 0.5) + 1


def test_the_paper_rule_cannot_see_a_tenfold_gain_at_five_microseconds():
    tree = Tree(
        [
            node(0, None, visits=6, latency=5.0),
            node(1, 0, visits=3, latency=0.5),
            node(2, 0, visits=1, latency=5.0),
            node(3, 0, visits=1, latency=5.0),
            node(4, 0, visits=1, latency=5.0),
        ]
    )
    assert select(tree, policy("paper")).id != "n1"
    assert select(tree, policy("log")).id == "n1"


def test_an_open_lease_counts_as_a_child_to_come():
    free = Tree([node(0, None, visits=1)])
    leased = Tree([node(0, None, visits=1, pending=2)])
    assert widens(free, free.root, policy("log"))
    assert not widens(leased, leased.root, policy("log"))


def test_two_leases_on_one_tree_spread_over_it():
    nodes = [node(0, None, visits=5), node(1, 0, 2, 50.0), node(2, 0, 2, 51.0), node(3, 0, 1, 90.0)]
    first = select(Tree(nodes), policy("log")).id
    again = [TreeNode(**{**vars(n), "pending": 2}) if n.id == first else n for n in nodes]
    assert select(Tree(again), policy("log")).id != first


def test_a_spent_child_is_left_alone():
    tree = Tree(
        [
            node(0, None, visits=21),
            node(1, 0, visits=12, latency=10.0),
            *[node(i, 0, visits=1, latency=80.0) for i in range(2, 7)],
        ]
    )
    assert select(tree, policy("log")).id != "n1"


def test_an_untimed_child_is_not_descended_into():
    tree = Tree([node(0, None, visits=1), node(1, 0, 0, None), node(2, 0, 0, None)])
    assert select(tree, policy("log")).id == "n0"


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(BadOption, match="log or paper"):
        policy("magic")
