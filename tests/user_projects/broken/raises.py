"""A model that cannot run."""

import torch


class Broken(torch.nn.Module):
    def forward(self, x):
        return x @ x


def make_model():
    return Broken()


def make_inputs():
    return torch.zeros(2, 3)
