"""What people see on a terminal of a given width, through the real command."""

import fcntl
import os
import pty
import re
import struct
import termios

import pytest

WIDTHS = (80, 110, 132)
NUMBERS = re.compile(r"\d+\.\d (us|ms)")


def on_a_terminal(command, width, folder):
    """What a command prints on a terminal, without colors."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        os.chdir(folder)
        # What readline puts into the environment of the C library would win over the terminal.
        os.execvp("env", ["env", "-u", "COLUMNS", "-u", "LINES", "TERM=xterm", *command])
    printed = b""
    while part := _read(terminal):
        printed += part
    os.close(terminal)
    os.waitpid(pid, 0)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode())
    return text.replace("\r", "").splitlines()


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize("width", WIDTHS)
def test_ids_and_numbers_stay_whole_at_every_width(forged, python_command, width):
    lines = on_a_terminal([*python_command, "cards"], width, forged.folder)
    assert max(map(len, lines)) <= width
    (row,) = [line for line in lines if "aten::roll" in line]
    assert re.search(rf"^k\d+ +aten::roll +{forged.variant} ", row)
    assert NUMBERS.search(row)
    assert re.search(r"\d\.\d% +\d+\.\d% +\d+\.\dx +\d+\.\d%$", row)
    assert ("inputs" in lines[1]) == (width > WIDTHS[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_cast_is_shown_whole_with_code_that_can_be_copied(forged, python_command, width):
    command = [*python_command, "cast", "inspect", "good.cast"]
    lines = on_a_terminal(command, width, forged.folder)
    (row,) = [line for line in lines if re.match(rf"1 +{forged.node} ", line)]
    assert "aten::roll" in row
    assert re.search(r"\d\.\d% +\d+\.\d us +\d+\.\d us +[\d.]+x \([\d.]+ to [\d.]+\)", row)
    code = lines[lines.index("from kernelforge_engine import cast") :]
    compile("\n".join(code), "load", "exec")
    assert "kernels.enable(model)" in code


def test_in_a_pipe_a_description_is_not_cut(forged):
    assert "f32[8, 8] f32[8, 8]" in forged.run("cards").stdout
    assert "…" not in forged.run("optimize", "--budget", 1).stdout
