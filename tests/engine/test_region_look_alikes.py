"""Modules that look like the one a kernel was judged for, and differ in something."""

import pytest
import torch

ROWS, SIZE = 6, 16


def other_eps(code, norm, x):
    return code.RMSNorm(eps=1e-2), x


def other_size(code, norm, x):
    return code.RMSNorm(SIZE + 4), torch.randn(ROWS, SIZE + 4)


def other_dtype(code, norm, x):
    return norm.double(), x


def other_input_dtype(code, norm, x):
    return norm, x.double()


def other_rows(code, norm, x):
    return norm, torch.randn(ROWS + 1, SIZE)


def other_layout(code, norm, x):
    return norm, x.t().contiguous().t()


def other_alignment(code, norm, x):
    return norm, torch.randn(ROWS * SIZE + 1)[1:].view(ROWS, SIZE)


def overridden(code, norm, x):
    return code.Louder(), x


def own_forward(code, norm, x):
    norm.forward = lambda t: t + 1
    return norm, x


def same_tensor_twice(code, norm, x):
    norm = code.RMSNorm(SIZE)
    return norm, norm.weight.detach().expand(ROWS, SIZE)


def more_attributes(code, norm, x):
    norm.more = 3
    return norm, x


def an_integer_for_a_float(code, norm, x):
    norm.variance_epsilon = True
    return norm, x


def another_parameter(code, norm, x):
    norm.bias = torch.nn.Parameter(torch.zeros(SIZE))
    return norm, x


LOOK_ALIKES = [
    other_eps, other_size, other_dtype, other_input_dtype, other_rows, other_layout,
    other_alignment, overridden, own_forward, same_tensor_twice, more_attributes,
    an_integer_for_a_float, another_parameter,
]  # fmt: skip


@pytest.mark.parametrize("change", LOOK_ALIKES)
@pytest.mark.parametrize("late", [False, True], ids=["from the first call", "after a hit"])
def test_a_look_alike_never_hits(norms, code, x, change, late):
    norm = code.RMSNorm(SIZE)
    with torch.no_grad(), norms:
        if late:
            norm(x)
            norm(x)
        before = norms.counters().hits
        module, given = change(code, norm, x)
        found = [module(given) for _ in range(3)]
        assert norms.counters().hits == before == late
    assert all(torch.equal(f, module(given)) for f in found)
