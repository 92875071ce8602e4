#!/usr/bin/env python3
"""Records a small distributed job with PyTorch's profiler, for whoever has no cluster at hand: ranks of one machine over gloo.

    gloo_job.py FOLDER [--kind ddp|sharded] [--ranks N] [--steps N]

ddp: DistributedDataParallel, gradients in buckets. sharded: as FSDP with SHARD_GRAD_OP, each rank keeps a share of every layer's weights,
gathers them layer by layer in the forward pass and keeps them for the backward pass (gloo has no reduce-scatter: gradients are all-reduced).
Writes FOLDER/rankN.json and FOLDER.measured.json: each rank's steps on the wall clock, in s. Needs torch (Debian: python3-torch)."""
import argparse
import datetime
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

WARM_UP = 2
RECORDINGS = 8  # at most


class Gathered(torch.autograd.Function):
    """Weights from all ranks' shares; in the backward pass the gradient's sum, of which each rank keeps its share."""

    @staticmethod
    def forward(ctx, share):
        shares = [torch.empty_like(share) for _ in range(dist.get_world_size())]
        dist.all_gather(shares, share)
        return torch.cat(shares)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient.chunk(dist.get_world_size())[dist.get_rank()]


class ShardedLinear(nn.Module):
    def __init__(self, width, ranks):
        super().__init__()
        self.share = nn.Parameter(torch.randn(width // ranks, width) / width**0.5)

    def forward(self, x):
        return torch.relu(x @ Gathered.apply(self.share).t())


def job(rank, meeting, options):
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=options.ranks, timeout=limit)
    torch.manual_seed(rank)
    width, depth = 384, 6
    if options.kind == "ddp":
        layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
        model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=1)
    else:
        model = nn.Sequential(*[ShardedLinear(width, options.ranks) for _ in range(depth)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    plan = schedule(wait=WARM_UP - 1, warmup=1, active=options.steps)

    def record():
        """Trains and writes this rank's trace; returns its steps on the wall clock and how many collectives the trace shows."""
        times, shown = [], []

        def keep(p):
            p.export_chrome_trace(f"{options.folder}/rank{rank}.json")
            shown.append(sum(event.name.startswith("gloo:") for event in p.events()))

        with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=keep, record_shapes=True) as profiler:
            for _ in range(WARM_UP + options.steps):
                begun = time.perf_counter()
                optimizer.zero_grad()
                model(torch.randn(128, width)).square().mean().backward()
                optimizer.step()
                times.append(time.perf_counter() - begun)
                profiler.step()
        return times[WARM_UP:], shown[0]

    # A thread of gloo wakes who waits for a collective before it tells the profiler that it has ended: the last collective of the
    # last step is lost when the profiler stops in between. Such a recording is not one of whole steps, and is made again.
    everyone = [None] * options.ranks
    for _ in range(RECORDINGS):
        dist.all_gather_object(everyone, record())
        whole = len({shown for _, shown in everyone}) == 1 and everyone[0][1] % options.steps == 0
        if whole:
            break
    if not whole:
        sys.exit(f"gloo_job.py: in {RECORDINGS} recordings the profiler lost collectives, here {[shown for _, shown in everyone]}")
    if rank == 0:
        with open(options.folder.rstrip("/") + ".measured.json", "w") as out:
            json.dump(dict(kind=options.kind, torch=torch.__version__, ranks=[times for times, _ in everyone]), out)
    dist.barrier()
    os._exit(0)  # at once: threads of gloo and of the profiler may wait for each other at the end of the process


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--kind", choices=["ddp", "sharded"], default="ddp")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    chosen = parser.parse_args()
    os.makedirs(chosen.folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as meeting:  # a file: no port that somebody else may take
        mp.spawn(job, args=(f"{meeting}/ranks", chosen), nprocs=chosen.ranks)
