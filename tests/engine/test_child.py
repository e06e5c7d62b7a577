"""A child of ours that answers with something that is no message."""

import os
import sys

import pytest

from kernelforge_engine.errors import ChildDied
from kernelforge_engine.pool.child import Child, Ended
from kernelforge_engine.pool.protocol import BuilderReply

JUNK = """
import sys, time
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.adopt import channel

ours, _ = channel()
print("last words", flush=True)
frames.send(ours, {frame!r})
time.sleep(60)
"""
FRAMES = [b"", b"junk", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"kind":"sampled","us":"?"}']


@pytest.fixture(params=FRAMES, ids=lambda frame: frame[:8].decode(errors="replace"))
def child(request, tmp_path):
    (tmp_path / "junk_child.py").write_text(JUNK.format(frame=request.param))
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    with Child("Runner", "junk_child", environment=environment) as child:
        yield child


def test_a_reply_that_is_no_message_ends_the_child(child):
    with pytest.raises(Ended, match="a reply that is no message") as ended:
        child.ask({}, BuilderReply, 60.0)
    assert (ended.value.killed_by, ended.value.words) == (None, "last words")
    assert not child.alive


def test_a_child_of_ours_that_sends_none_is_named(child):
    with pytest.raises(ChildDied, match="Runner process ended with a reply that is no message"):
        child.request("run", {}, BuilderReply, 60.0)
