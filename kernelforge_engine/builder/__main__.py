"""The Builder process: one order in, one answer out."""

from kernelforge_engine import codec
from kernelforge_engine.builder.building import build
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.pool import adopt, frames
from kernelforge_engine.pool.protocol import Build, BuildRefused, Built, Raised


def main() -> None:
    """Answer the one order on the channel."""
    channel, _ = adopt.channel()
    order = codec.loads(Build, frames.receive(channel, None))
    frames.send(channel, codec.dumps(_answer(order)).encode())


def _answer(order: Build) -> Built | BuildRefused | Raised:
    try:
        return build(order)
    except KernelForgeError as error:
        return Raised.of(error)


if __name__ == "__main__":
    main()
