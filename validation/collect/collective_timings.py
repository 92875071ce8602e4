#!/usr/bin/env python3
"""Times NCCL's collectives, or reads logs of nccl-tests, and writes them for `paceline calibrate --collectives`.

    torchrun --nproc-per-node 8 collective_timings.py --output nccl.csv              on every node, with --nnodes etc.
    collective_timings.py --output nccl.csv --logs all_reduce.log all_gather.log     from nccl-tests, without PyTorch
    paceline calibrate --collectives nccl.csv --platform mine.xml -o collectives.json

Every call is timed as nccl-tests does it: --calls in a row between two CUDA events, after a warm-up; the median of --repeats
such averages, of the slowest rank, is written. Sizes are those of the full buffer, as nccl-tests counts: what all_gather ends
up with, what reduce_scatter begins with, what each rank of all_to_all has. Groups: all ranks, and on one node the first 2, 4,
8 ... of it; "send" is from the first rank to the second and to the first of the second node. An existing output is continued.

Logs: out-of-place times; the operation is taken from the log ("Collective test starting"), else from the file's name
(all_reduce_perf...), else from --op; GPUs and nodes from its list of ranks. Nothing else should use the machine meanwhile.
"""
import argparse
import csv
import os
import re
import statistics
import sys
import time

COLUMNS = ["op", "n_gpus", "n_nodes", "size_bytes", "time_us"]
OPS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send"]
IN_NCCL_TESTS = {"all_reduce": "all_reduce", "reduce_scatter": "reduce_scatter", "all_gather": "all_gather",
                 "broadcast": "broadcast", "alltoall": "all_to_all"}


# ---- logs of nccl-tests ----

def find_op(text, path, chosen):
    if chosen:
        return chosen
    for place in (text, os.path.basename(path)):
        match = re.search(r"(\w+)_perf", place) if place != text else re.search(r"test starting: (\w+)_perf", place)
        if match and match.group(1) in IN_NCCL_TESTS:
            return IN_NCCL_TESTS[match.group(1)]
    sys.exit(f"collective_timings.py: {path}: which operation is this? --op is one of {', '.join(OPS[:-1])}")


def read_log(path, chosen):
    """Rows of one log. The last eight figures of a line are time, algorithm and bus bandwidth and errors, twice."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    op = find_op(text, path, chosen)
    hosts = [m.group(1) for m in re.finditer(r"Rank +\d+ .*?on +(\S+) +device", text)]
    if not hosts:
        sys.exit(f"collective_timings.py: {path}: no line 'Rank 0 ... on HOST device 0', so the number of GPUs is unknown")
    rows = []
    for line in text.splitlines():
        words = re.sub(r"^\[[^\]]*\](<stdout>)?:? *", "", line).split()
        if len(words) >= 10 and words[0].isdigit() and words[1].isdigit() and re.fullmatch(r"[\d.]+", words[-8]):
            if int(words[0]) > 0 and float(words[-8]) > 0:
                rows.append([op, len(hosts), len(set(hosts)), int(words[0]), words[-8]])
    if not rows:
        sys.exit(f"collective_timings.py: {path}: no line with a size and a time, as nccl-tests prints them")
    return rows


# ---- timings by PyTorch ----

class Runner:
    """One process of the job. Gloo on CPUs is for trying the script out: its times say nothing about NCCL."""

    def __init__(self, torch, options):
        import torch.distributed as dist
        self.torch, self.dist, self.options = torch, dist, options
        self.local = int(os.environ.get("LOCAL_RANK", "0"))
        self.cuda = options.backend == "nccl"
        if self.cuda:
            torch.cuda.set_device(self.local)
        dist.init_process_group(options.backend)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.per_node = int(os.environ.get("LOCAL_WORLD_SIZE", self.world))
        self.device = torch.device("cuda", self.local) if self.cuda else torch.device("cpu")

    def groups(self):
        """(ranks, n_nodes), the same list on every rank; a send has its two ranks."""
        sizes = [1 << i for i in range(1, 16) if 1 << i < self.per_node] + [self.per_node]
        lists = [(list(range(n)), 1) for n in sizes if n > 1]
        for nodes in range(2, self.world // self.per_node + 1):
            if nodes & (nodes - 1) == 0 or nodes * self.per_node == self.world:
                lists.append((list(range(nodes * self.per_node)), nodes))
        return lists

    def call(self, op, ranks, group, size):
        """(bytes that the buffer really has, function to time)."""
        torch, dist, n = self.torch, self.dist, len(ranks)
        count = max(size // 4 // n, 1) * n
        full = torch.zeros(count, dtype=torch.float32, device=self.device)
        part = torch.zeros(count // n, dtype=torch.float32, device=self.device)
        parts = list(full.chunk(n))
        run = {"all_reduce": lambda: dist.all_reduce(full, group=group),
               "broadcast": lambda: dist.broadcast(full, ranks[0], group=group),
               "all_gather": lambda: dist.all_gather(parts, part, group=group),
               "reduce_scatter": lambda: dist.reduce_scatter(part, parts, group=group),
               "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(full), full, group=group),
               "send": lambda: dist.send(full, ranks[1]) if self.rank == ranks[0] else dist.recv(full, ranks[0])}[op]
        if op == "all_gather" and hasattr(dist, "all_gather_into_tensor") and self.cuda:
            run = lambda: dist.all_gather_into_tensor(full, part, group=group)
        if op == "reduce_scatter" and hasattr(dist, "reduce_scatter_tensor") and self.cuda:
            run = lambda: dist.reduce_scatter_tensor(part, full, group=group)
        return 4 * count, run

    def average_us(self, run, calls):
        if not self.cuda:
            start = time.perf_counter()
            for _ in range(calls):
                run()
            return (time.perf_counter() - start) / calls * 1e6
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            run()
        end.record()
        self.torch.cuda.synchronize()
        return start.elapsed_time(end) / calls * 1e3

    def time_us(self, op, ranks, group, size):
        """(bytes, microseconds of the slowest rank); called by the group's ranks only."""
        size, run = self.call(op, ranks, group, size)
        self.average_us(run, max(self.options.calls // 4, 1))
        times = []
        for _ in range(self.options.repeats):
            self.dist.barrier(group=group)
            times.append(self.average_us(run, self.options.calls))
        slowest = self.torch.tensor([statistics.median(times)], device=self.device)
        self.dist.all_reduce(slowest, op=self.dist.ReduceOp.MAX, group=group)
        return size, slowest.item()

    def rows(self, op, done):
        """The rows of one operation; every rank takes part in making the groups."""
        lists = self.groups()
        if op == "send":
            lists = [([0, 1], 1)] if self.per_node > 1 else []
            lists += [([0, self.per_node], 2)] if self.world > self.per_node else []
        for ranks, nodes in lists:
            group = self.dist.new_group(ranks)
            for size in self.options.sizes:
                if self.rank in ranks and (op, len(ranks), nodes, max(size // 4 // len(ranks), 1) * len(ranks) * 4) not in done:
                    bytes_, us = self.time_us(op, ranks, group, size)
                    yield [op, len(ranks), nodes, bytes_, f"{us:.4g}"]
            self.dist.barrier()


def read_done(path):
    """(op, GPUs, nodes, bytes) that an earlier run has written."""
    if not os.path.exists(path):
        return set()
    with open(path, newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {(row["op"],) + tuple(int(row[key]) for key in COLUMNS[1:4]) for row in rows}


def append(path, rows, remark):
    new = not os.path.exists(path) or os.path.getsize(path) == 0
    with open(path, "a", newline="", encoding="utf-8") as stream:
        if new:
            stream.write(f"# collective_timings.py: {remark}\n")
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(row)
            stream.flush()


def collect(options):
    try:
        import torch
    except ImportError:
        sys.exit("collective_timings.py: PyTorch is not installed; see https://pytorch.org (--logs does without it)")
    if options.backend == "nccl" and not torch.cuda.is_available():
        sys.exit("collective_timings.py: PyTorch sees no CUDA GPU; --backend gloo tries the script out on CPUs")
    if "RANK" not in os.environ:
        sys.exit("collective_timings.py: start it with torchrun, one process per GPU")
    runner = Runner(torch, options)
    done = read_done(options.output)
    runner.dist.barrier()  # everybody has read before the first writes
    version = ".".join(map(str, torch.cuda.nccl.version())) if runner.cuda else "-"
    for op in options.ops:
        if options.backend == "gloo" and op in ("reduce_scatter", "all_to_all"):
            continue  # it has none
        rows = runner.rows(op, done)
        if runner.rank == 0:
            append(options.output, rows, f"torch {torch.__version__}, {options.backend} {version}, "
                                         f"{options.repeats} x {options.calls} calls")
            print(f"{op}: done", file=sys.stderr)
        else:
            for _ in rows:
                pass
    runner.dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="the CSV file to write or to continue")
    parser.add_argument("--logs", nargs="+", help="logs of nccl-tests, one operation each, instead of timing")
    parser.add_argument("--op", choices=OPS[:-1], help="with --logs: the operation, where neither log nor name says it")
    parser.add_argument("--ops", default=",".join(OPS), help=f"what is timed (default: {','.join(OPS)})")
    parser.add_argument("--least", type=int, default=1 << 10, help="smallest size in bytes (default: 1 KiB)")
    parser.add_argument("--largest", type=int, default=4 << 30, help="largest size in bytes (default: 4 GiB)")
    parser.add_argument("--calls", type=int, default=20, help="calls in a row of which the average is taken")
    parser.add_argument("--repeats", type=int, default=5, help="averages of which the median is written")
    parser.add_argument("--backend", default="nccl", choices=("nccl", "gloo"), help="gloo: on CPUs, to try the script out")
    options = parser.parse_args()
    options.ops = options.ops.split(",")
    for op in options.ops:
        if op not in OPS:
            parser.error(f"--ops: '{op}' is none of {', '.join(OPS)}")
    if options.calls < 1 or options.repeats < 1 or not 0 < options.least <= options.largest:
        parser.error("--calls, --repeats and --least must be at least 1, --largest at least --least")
    options.sizes = [1 << i for i in range(64) if options.least <= 1 << i <= options.largest]
    if options.logs:
        append(options.output, [row for path in options.logs for row in read_log(path, options.op)], "logs of nccl-tests")
    else:
        collect(options)


if __name__ == "__main__":
    main()
