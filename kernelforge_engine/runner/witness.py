"""The witness: a child that locks itself up as a Runner does, tries what a candidate must not be
able to do, and says what still worked."""

from kernelforge_engine import codec
from kernelforge_engine.pool import adopt, frames
from kernelforge_engine.pool.protocol import Isolate, Isolated
from kernelforge_engine.sandbox import witness
from kernelforge_engine.sandbox.lock import Policy, enter


def main() -> None:
    """Answer the one order on the channel."""
    channel, _ = adopt.channel()
    codec.loads(Isolate, frames.receive(channel, None))
    codec.adapter(Isolated)
    level = enter(Policy(native=True)).partition(";")[0]
    reply = Isolated(level=level, open=witness.open_doors(spawn=False))
    frames.send(channel, codec.dumps(reply).encode())


if __name__ == "__main__":
    main()
