"""The Builder process: one order in, one answer out."""

from kernelforge_engine import codec
from kernelforge_engine.builder.building import build
from kernelforge_engine.errors import NoCompiler
from kernelforge_engine.pool import adopt, frames
from kernelforge_engine.pool.protocol import Build, BuildImpossible, BuildRefused, Built


def main() -> None:
    """Answer the one order on the channel."""
    channel, _ = adopt.channel()
    order = codec.loads(Build, frames.receive(channel, None))
    frames.send(channel, codec.dumps(_answer(order)).encode())


def _answer(order: Build) -> Built | BuildRefused | BuildImpossible:
    try:
        return build(order)
    except NoCompiler as missing:
        fields = missing.fields
        return BuildImpossible(compiler=str(fields["compiler"]), step=str(fields["step"]))


if __name__ == "__main__":
    main()
