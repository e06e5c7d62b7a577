"""A program of others is bounded in time and takes nothing of its session beyond its end."""

import os

from kernelforge_engine.pool.program import Program

ENVIRONMENT = {"PATH": os.defpath}


def test_its_status_and_its_words_are_known_once_it_has_ended(tmp_path):
    program = Program(["sh", "-c", "echo said; exit 3"], ENVIRONMENT, tmp_path / "words")
    assert program.ended(60) == 3
    assert program.words == "said\n"


async def test_one_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path, processes):
    code = "sleep 600 & echo $!; wait"
    program = Program(["sh", "-c", code], ENVIRONMENT, tmp_path / "words")
    while not program.words.endswith("\n"):
        pass
    assert program.ended(0.05) is None
    await processes.gone([int(program.words)])
