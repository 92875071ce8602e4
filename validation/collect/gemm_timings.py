#!/usr/bin/env python3
"""Times matrix products on a CUDA GPU with PyTorch and writes them for `paceline calibrate --gemm`.

    gemm_timings.py --output gemm.csv
    paceline calibrate --gemm gemm.csv -o platforms/devices/mygpu.json      (--base PROFILE if Paceline does not know the GPU)

Every shape is timed as training runs it: y = x w^T through torch.matmul (a linear layer), torch.bmm for batches. Per shape:
a warm-up, then --repeats timings by CUDA events around one call each; the median is written. Between two timings a buffer
larger than the L2 cache is overwritten, so that operands come from memory as they do in a training step, and keeps the GPU
busy while the host queues the call, so that no launch latency of the host is timed. Operands are random numbers: products of
zeros take less power and clock higher. Shapes are a fixed list, in an order that mixes sizes, so that a GPU that heats up does
not slow down one end of it. An existing output is continued: shapes that it has are skipped.

Takes about half an hour for 16-bit types on an A100. Nothing else should use the GPU meanwhile.
"""
import argparse
import csv
import hashlib
import itertools
import os
import statistics
import sys

COLUMNS = ["gpu", "multiprocessors", "dtype", "batch", "m", "n", "k", "time_us"]
ROWS = [16, 32, 64, 96, 128, 160, 192, 256, 257, 384, 512, 513, 768, 1024, 1025, 1280, 1536, 1792, 2048, 2049, 2560, 3072,
        3584, 4096, 4097, 6144, 8192, 12288, 16384, 32768]
WIDTHS = [32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 10240, 12288, 16384, 28672,
          51200, 65536]
BATCHES = [(batch, m, n, k) for batch in (8, 16, 32, 64, 128) for m in (256, 512, 1024, 2048, 4096)
           for n, k in ((m, 64), (m, 128), (64, m), (128, m))]
UNALIGNED = [(1, 4096, n, k) for n in (4095, 4094, 4092) for k in (1024, 4096)] + [
    (1, 4096, n, k) for n in (1024, 4096) for k in (4095, 4094, 4092)]
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "float32"}
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4}


def shapes(dtype, longest_flops, memory_bytes):
    """(batch, m, n, k) of everything that is worth timing, in a fixed order that mixes sizes."""
    single = [(1, m, n, k) for m, n, k in itertools.product(ROWS, WIDTHS, WIDTHS)]
    wanted = set(single + BATCHES + UNALIGNED)
    fitting = [s for s in wanted
               if 2 * s[0] * s[1] * s[2] * s[3] <= longest_flops
               and BYTES[dtype] * s[0] * (s[1] * s[3] + s[3] * s[2] + s[1] * s[2]) <= memory_bytes]
    return sorted(fitting, key=lambda s: hashlib.sha256(repr(s).encode()).digest())


def time_one(torch, shape, torch_dtype, flush, repeats):
    """Median seconds of one product."""
    batch, m, n, k = shape
    if batch > 1:
        left = torch.randn(batch, m, k, device="cuda", dtype=torch_dtype)
        right = torch.randn(batch, k, n, device="cuda", dtype=torch_dtype)
        out = torch.empty(batch, m, n, device="cuda", dtype=torch_dtype)
        run = lambda: torch.bmm(left, right, out=out)
    else:
        left = torch.randn(m, k, device="cuda", dtype=torch_dtype)
        right = torch.randn(n, k, device="cuda", dtype=torch_dtype).t()
        out = torch.empty(m, n, device="cuda", dtype=torch_dtype)
        run = lambda: torch.matmul(left, right, out=out)
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for start, end in events:
        flush.zero_()
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) * 1e-3 for start, end in events)


def read_done(path):
    """Shapes that an earlier run has written."""
    if not os.path.exists(path):
        return set()
    with open(path, newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {(row["dtype"],) + tuple(int(row[key]) for key in ("batch", "m", "n", "k")) for row in rows}


def collect(torch, options):
    """Times everything and appends it to the output, row by row."""
    device = torch.cuda.get_device_properties(0)
    flush_bytes = max(4 * getattr(device, "L2_cache_size", 0), 256 << 20)
    flush = torch.empty(flush_bytes, dtype=torch.uint8, device="cuda")
    memory_bytes = 0.8 * torch.cuda.mem_get_info()[0]
    done = read_done(options.output)
    with open(options.output, "a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if not done and stream.tell() == 0:
            stream.write(f"# gemm_timings.py: torch {torch.__version__}, CUDA {torch.version.cuda}, {options.repeats} repeats\n")
            writer.writerow(COLUMNS)
        for dtype in options.dtype:
            torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
            todo = [s for s in shapes(dtype, options.longest_flops, memory_bytes) if (dtype,) + s not in done]
            for number, shape in enumerate(todo):
                time_s = time_one(torch, shape, getattr(torch, DTYPES[dtype]), flush, options.repeats)
                writer.writerow([device.name, device.multi_processor_count, dtype, *shape, f"{1e6 * time_s:.4g}"])
                if number % 100 == 0:
                    stream.flush()
                    print(f"{dtype}: {number} of {len(todo)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", help="the CSV file to write or to continue")
    parser.add_argument("--dtype", default="bf16", help="comma-separated list of bf16, fp16, fp32, tf32 (default: bf16)")
    parser.add_argument("--repeats", type=int, default=11, help="timings per shape, of which the median is written")
    parser.add_argument("--longest-flops", type=float, default=2e13, help="leave out larger products (default: 2e13)")
    parser.add_argument("--list", action="store_true", help="print the shapes instead of timing them; needs no GPU")
    options = parser.parse_args()
    options.dtype = options.dtype.split(",")
    unknown = [dtype for dtype in options.dtype if dtype not in DTYPES]
    if unknown:
        parser.error(f"--dtype: '{unknown[0]}' is none of {', '.join(DTYPES)}")
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if options.list:
        print(",".join(COLUMNS))
        for dtype in options.dtype:
            for shape in shapes(dtype, options.longest_flops, 60e9):
                print(",".join(["", "", dtype, *map(str, shape), ""]))
        return
    if not options.output:
        parser.error("--output is missing")
    try:
        import torch
    except ImportError:
        sys.exit("gemm_timings.py: PyTorch is not installed; see https://pytorch.org")
    if not torch.cuda.is_available():
        sys.exit("gemm_timings.py: PyTorch sees no CUDA GPU; --list prints the shapes without one")
    collect(torch, options)


if __name__ == "__main__":
    main()
