"""A worker of entc in Python, so that the network can be the very one that the other servers run.

It takes the arguments of `ent-worker`, and says what runtime/wire says: a frame is 16 bytes of head, a message in
postcard (numbers are varints, of signed ones the zigzag), and the tensors' bytes. All requests of a batch come as
one tensor.
"""

import argparse
import os
import socket
import struct

MAGIC = b"entW"
FP32 = 11  # its place in Datatype


def varint(number):
    """A number as postcard writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(words):
    """Words as postcard writes them."""
    words = words.encode()
    return varint(len(words)) + words


class Reader:
    """Reads a message from its start."""

    def __init__(self, message):
        self.message, self.at = message, 0

    def number(self):
        """A varint."""
        number = shift = 0
        while True:
            byte = self.message[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def skip(self, length):
        """Passes over bytes."""
        self.at += length


def receive(stream):
    """One frame: its message and its tensors, or nothing when the gateway has gone."""
    head = stream.read(16)
    if len(head) < 16:
        return None, None
    magic, message, body = struct.unpack("<4sIQ", head)
    if magic != MAGIC:
        raise SystemExit(f"not a frame: {magic!r}")
    return stream.read(message), stream.read(body)


def frame(message, body=b""):
    """One frame."""
    return struct.pack("<4sIQ", MAGIC, len(message), len(body)) + message + body


def rows_of(batch):
    """Of Execute (variant 3): the batch's number and its rows. Its input's name and shape are known."""
    reader = Reader(batch)
    reader.skip(1)
    return reader.number(), reader.number()


def batch_limit(message):
    """Of Welcome: the largest batch."""
    reader = Reader(message)
    reader.skip(1)
    reader.skip(reader.number())  # the model's name
    for _ in range(2):
        if reader.number():  # an artefact, then a signature
            raise SystemExit("this worker knows its network, and takes neither artefact nor signature")
    return reader.number()


def main():
    """Serves until the gateway goes."""
    # Here, so that others can use the frames without it.
    import numpy as np

    parser = argparse.ArgumentParser()
    for name in ["socket", "service", "replica", "epoch", "process", "executor"]:
        parser.add_argument(f"--{name}", required=True)
    arguments, _ = parser.parse_known_args()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(arguments.socket)
    stream = connection.makefile("rb", buffering=1 << 16)
    executor = {"modelled": 0, "torch": 1}[arguments.executor]
    hello = [
        varint(0),
        varint(1),
        text(arguments.service),
        text(arguments.replica),
        varint(int(arguments.epoch)),
    ]
    hello += [varint(int(arguments.process)), varint(executor), varint(os.getpid())]
    connection.sendall(frame(b"".join(hello)))
    message, _ = receive(stream)
    if message is None or message[0] != 0:
        raise SystemExit(f"the gateway does not take this worker: {message!r}")
    # Warm: the batch, and a signature of one input and one output, each [-1, 1].
    tensors = [varint(1) + text(name) + varint(FP32) + bytes([2, 1, 2]) for name in "xy"]
    connection.sendall(frame(varint(1) + varint(batch_limit(message)) + b"\1" + b"".join(tensors)))
    while True:
        message, body = receive(stream)
        if message is None or message[0] == 4:
            return
        if message[0] != 3:
            raise SystemExit(f"the batch was changed, which this worker cannot do: {message!r}")
        batch, rows = rows_of(message)
        doubled = (np.frombuffer(body, dtype=np.float32).reshape(rows, 1) * np.float32(2)).tobytes()
        # Done: batch, no time, no energy, one output [rows, 1].
        done = [varint(2), varint(batch), varint(0), b"\0", varint(1), text("y"), varint(FP32)]
        done += [varint(2), varint(2 * rows), varint(2), varint(len(doubled))]
        connection.sendall(frame(b"".join(done), doubled))


if __name__ == "__main__":
    main()
