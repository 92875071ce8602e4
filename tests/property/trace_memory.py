"""Import of a dense trace of the profiler takes at most 64 bytes of memory an op, whatever becomes of it on the way: a
gigabyte, some four million ops, fits in 256 MiB. Measured as what a large trace takes more than a small one."""
# Not sanitized: the memory that sanitizers take is their own.
import os
import subprocess
import sys
import tempfile

MOST_BYTES_PER_OP = 64
FEW, MANY = 1000, 150000  # kernels; as many launches


def write(path, n, streams):
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


def peak_bytes(paceline, path):
    job = path + ".h5"
    pid = subprocess.Popen([paceline, "trace", "import", path, "-o", job], stdout=subprocess.DEVNULL).pid
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, path
    return usage.ru_maxrss * 1024


def main():
    paceline = os.environ["PACELINE"]
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for n in (FEW, MANY):
            path = os.path.join(folder, f"rank0-{n}.json")
            write(path, n, streams=3)
            peaks.append(peak_bytes(paceline, path))
    per_op = (peaks[1] - peaks[0]) / (2 * (MANY - FEW))
    print(f"{peaks[0] / 2**20:.1f} MiB, {peaks[1] / 2**20:.1f} MiB: {per_op:.1f} bytes an op")
    return 0 if 0 < per_op <= MOST_BYTES_PER_OP else 1


sys.exit(main())
