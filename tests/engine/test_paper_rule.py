"""The published rule against a transcription of its equations that shares no code with it.

expand x          while  |children(x)| <= floor(N_x ^ alpha(R))
alpha(R)          = 0.5 - (0.5 - 0.3) min(1, N_R / 1000)
descend           to argmin over unspent c of  L_c - C sqrt(ln N_x / N_c),  C = 1
L_c               the least latency in the subtree of c, in milliseconds
spent             N_c >= 10 and L_c >= latency(c)
after each result N_x += 1 for the node and every ancestor
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import EAGER_US, grow, node

from kernelforge_engine.search.policy import policy
from kernelforge_engine.search.tree import Tree

US = st.floats(0.1, 1e6)


class Transcribed:
    """A tree as the equations have it: lists by node, the root is 0."""

    def __init__(self, parents, latencies_us, visits):
        self.parents, self.visits = parents, visits
        self.ms = [None if us is None else us / 1000 for us in latencies_us]

    def children(self, x):
        return [i for i, parent in enumerate(self.parents) if parent == x]

    def least(self, x):
        own = [] if self.ms[x] is None else [self.ms[x]]
        below = [self.least(c) for c in self.children(x)]
        return min(own + [b for b in below if b < math.inf], default=math.inf)

    def alpha(self):
        return 0.5 - (0.5 - 0.3) * min(1, self.visits[0] / 1000)

    def spent(self, c):
        return self.visits[c] >= 10 and self.ms[c] is not None and self.least(c) >= self.ms[c]

    def ucb(self, c, x):
        return self.least(c) - 1 * math.sqrt(math.log(self.visits[x]) / self.visits[c])

    def chosen(self):
        x = 0
        while len(self.children(x)) > math.floor(self.visits[x] ** self.alpha()):
            unspent = [c for c in self.children(x) if not self.spent(c)]
            unspent = [c for c in unspent if self.least(c) < math.inf]
            if not unspent:
                break
            x = min(unspent, key=lambda c: self.ucb(c, x))
        return x


@st.composite
def histories(draw):
    """A tree of at most 40 nodes, some of them untimed, with the visits its results gave."""
    size = draw(st.integers(0, 40))
    parents = [None] + [draw(st.integers(0, i)) for i in range(size)]
    latencies = [draw(US)] + [draw(st.one_of(US, US, US, st.none())) for _ in range(size)]
    visits = [1 + draw(st.sampled_from([0, 0, 5, 400, 2000]))] + [0] * size
    for i in range(1, size + 1):
        step = i if latencies[i] is not None else None
        while step is not None:
            visits[step] += 1
            step = parents[step]
    return parents, latencies, visits


@given(histories())
def test_one_choice_is_that_of_the_equations(history):
    parents, latencies, visits = history
    tree = Tree(node(i, parents[i], visits[i], latencies[i]) for i in range(len(parents)))
    assert policy("paper")(tree).id == f"n{Transcribed(*history).chosen()}"


@settings(max_examples=40)
@given(st.lists(st.floats(1, 3e5), min_size=1, max_size=120))
def test_a_whole_search_is_that_of_the_equations(latencies):
    parents, visits, known = [None], [1], [EAGER_US]
    for latency in latencies:
        parents.append(Transcribed(parents, known, visits).chosen())
        known.append(latency)
        visits.append(0)
        step = len(parents) - 1
        while step is not None:
            visits[step] += 1
            step = parents[step]
    chosen, tree = grow(policy("paper"), latencies)
    assert chosen == parents[1:]
    assert [n.visits for n in tree] == visits


@pytest.mark.parametrize("name", ["spread", "log"])
@given(history=histories())
def test_the_scale_free_policies_do_not_depend_on_the_unit_of_time(name, history):
    parents, latencies, visits = history
    at = [
        policy(name)(
            Tree(
                node(i, parents[i], visits[i], None if us is None else us * unit)
                for i, us in enumerate(latencies)
            )
        ).id
        for unit in (1.0, 1024.0)
    ]
    assert at[0] == at[1]
