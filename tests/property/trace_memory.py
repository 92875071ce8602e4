"""Import of a dense trace of the profiler takes at most 64 bytes of memory an op, whatever becomes of it on the way, and of
a Chakra trace whose dates are made at most 56: a gigabyte, some four million ops, fits in 256 MiB. Measured as what a large
trace takes more than a small one, in which the program's own memory still hides some."""
# Not sanitized: the memory that sanitizers take is their own.
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import chakra  # noqa: E402

FEW = 1000
KERNELS, MOST_BYTES_PER_OP = 150000, 64  # as many launches
NODES, MOST_BYTES_PER_NODE = 600000, 60  # some 48, and what pages of the system add, of which large arenas have 2 MiB


def write_profile(path, n, streams=3):
    """n kernels, in the order of the profiler: by no means in the order of their streams."""
    with open(path, "w") as out:
        out.write('{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"traceEvents":[\n')
        out.write('{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":1,"tid":1,"ts":0,"dur":%d}' % (9 * n + 9))
        for k in range(n):
            stream = 7 + k % streams
            out.write(',\n{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":%d,"ts":%d.5,"dur":2,'
                      '"args":{"device":0,"stream":%d,"correlation":%d}}' % (k % 50, stream, 8 * k + 5, stream, k + 1))
            out.write(',\n{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%d,"dur":3,'
                      '"args":{"correlation":%d}}' % (8 * k + 1, k + 1))
        out.write("]}\n")


def write_chakra(path, n):
    """n nodes without dates, on three streams, each waiting for the one before it there."""
    ends = [chakra.node(0, "k%d" % k, 4, 1 + k % 7, is_cpu_op=False, stream=k % 3)[2:] for k in range(21)]
    with open(path, "wb") as out:
        out.write(chakra.record(chakra.block(1, "1.0.0")))
        for k in range(1, n + 1):
            waits = chakra.number(5, k - 3) if k > 3 else b""
            out.write(chakra.record(chakra.number(1, k) + waits + ends[k % 21]))


def peak_bytes(paceline, path):
    job = path + ".h5"
    pid = subprocess.Popen([paceline, "trace", "import", path, "-o", job], stdout=subprocess.DEVNULL).pid
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, path
    return usage.ru_maxrss * 1024


def bytes_per_op(paceline, name, write, many, ops_per_n):
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (FEW, many):
            path = os.path.join(folder, name % n)
            write(path, n)
            peaks.append(peak_bytes(paceline, path))
    per_op = (peaks[1] - peaks[0]) / (ops_per_n * (many - FEW))
    print(f"{name}: {peaks[0] / 2**20:.1f} MiB, {peaks[1] / 2**20:.1f} MiB: {per_op:.1f} bytes an op")
    return per_op


def main():
    paceline = os.environ["PACELINE"]
    if os.path.basename(os.environ.get("BUILD_DIR", "")) in ("asan", "tsan"):
        print("not measured: the memory that sanitizers take is their own")
        return 0
    of_profile = bytes_per_op(paceline, "rank0-%d.json", write_profile, KERNELS, 2)
    of_chakra = bytes_per_op(paceline, "trace-%d.0.et", write_chakra, NODES, 1)
    return 0 if 0 < of_profile <= MOST_BYTES_PER_OP and 0 < of_chakra <= MOST_BYTES_PER_NODE else 1


sys.exit(main())
