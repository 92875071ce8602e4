#!/usr/bin/env python3
"""Small Chakra execution traces, written without any library: what other tools would have written.

    chakra.py KIND FILE

KIND: foreign (durations and dependencies, no dates, as PyTorch's converter leaves it), workload (no durations), future (version 7),
late (a node of 40 days), cycle, bomb (a gzip file that expands without end), markup (names that a terminal should not get)."""
import gzip
import sys


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 0x7F | (0x80 if n > 0x7F else 0))
        n >>= 7
        if n == 0:
            return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n & (1 << 64) - 1)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, bool):
        return block(10, block(1, name) + number(27, int(value)))
    return block(10, block(1, name) + (block(29, value) if isinstance(value, str) else number(9, value)))


def node(id, name, type, us, after=(), **attributes):
    body = number(1, id) + block(2, name) + number(3, type) + block(5, b"".join(varint(a) for a in after)) + number(7, us)
    return body + b"".join(attribute(k, v) for k, v in attributes.items())


def record(body):
    return varint(len(body)) + body


def trace(kind):
    nodes = [
        node(3, "aten::mm", 4, 20, is_cpu_op=True, tid=1),
        node(5, "sgemm" if kind != "markup" else "<script>\x1b[31m", 4, 100, [3], is_cpu_op=False, stream=7),
        node(8, "c10d::allreduce_", 7, 10, [3], is_cpu_op=True, tid=1),
        node(9, "ncclDevKernel_AllReduce", 7, 50, [5, 8], is_cpu_op=False, stream=20, comm_type=0, comm_size=4096, pg_name="0"),
        node(10, "sgemm", 4, 30, [9, 77], is_cpu_op=False, stream=7),
    ]
    if kind == "workload":
        nodes = [node(1, "gemm", 4, 0, num_ops=10), node(2, "all-reduce", 7, 0, [1], comm_type=0, comm_size=64)]
    if kind == "late":
        nodes.append(node(11, "gemm", 4, -5, [10]))
    if kind == "cycle":
        nodes += [node(11, "a", 4, 5, [12]), node(12, "b", 4, 5, [11])]
    head = block(1, "7.0" if kind == "future" else "1.0.0")
    return record(head) + b"".join(record(n) for n in nodes)


def main(kind, path):
    if kind == "bomb":
        with gzip.open(path, "wb", compresslevel=9) as out:
            out.write(trace("foreign"))
            for _ in range(12):
                out.write(record(number(1, 7)) * (1 << 19))
        return
    with open(path, "wb") as out:
        out.write(trace(kind))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
