#!/usr/bin/env python3
"""A job folder as dPRO's tools leave it (JOB/HOST/RANK/), two ranks on two hosts: per step forward, two backward ops, negotiation of
two tensors, a fused all-reduce chunk by chunk around a ring, an update.

    dpro.py FOLDER [rings=0|1] [chunks=0|1] [steps=N] [tree=0|1]
    dpro.py FOLDER server=1 [steps=N] [ahead=US]        BytePS with one server, whose clock is ahead

tree=1: three ranks; ranks 1 and 2 send two chunks (loops) to rank 0, which sends both back, 50 us a message."""
import gzip
import json
import os
import sys


def rank_files(rank, steps, chunks, tree):
    computing, timeline, messages = [], [], []
    computing += [dict(ph="M", name="process_name", pid=5, args=dict(name="/device:GPU:0 (pid 5)")),
                  dict(ph="M", name="thread_name", pid=5, tid=2, args=dict(name="TensorFlow Ops")),
                  dict(ph="M", name="process_name", pid=1, args=dict(name="/host:CPU")),
                  dict(ph="M", name="thread_name", pid=1, tid=2, args=dict(name="TensorFlow Ops"))]
    timeline += [dict(ph="M", name="process_name", pid=0, args=dict(name="Sync")),
                 dict(ph="M", name="process_name", pid=1, args=dict(name="horovod_allreduce.1+0"))]
    for step in range(steps):
        at = 1000.5 + 2000 * step

        def op(name, kind, start, length):
            computing.append(dict(ph="X", pid=5, tid=2, name=kind, ts=at + start, dur=length, args=dict(long_name=f"{name}:{kind}", group_id=step)))

        def phase(pid, name, start, end):
            timeline.extend([dict(ph="B", pid=pid, name=name, ts=at + start), dict(ph="E", pid=pid, ts=at + end)])

        def message(what, chunk, start, end, loop=0):
            messages.append(dict(ph="X", pid=7, tid=0, name=f"Comm.<<12>>0+1.{what}", ts=at + start, dur=end - start,
                                 args=dict(loopId=loop, channelId=0, chunkId=chunk, sliceId=0)))

        computing.append(dict(ph="X", pid=1, tid=2, name="host op", ts=at, dur=5, args=dict(group_id=step)))
        op("forward", "Conv2D", 0, 100)
        op("StatefulPartitionedCall/grad1", "Conv2DBackprop", 100, 200 + 50 * rank)
        op("grad0", "Conv2DBackprop", 300 + 50 * rank, 100)
        phase(0, "1", 300 + 50 * rank, 460)
        phase(0, "0", 400 + 50 * rank, 460)
        phase(1, "QUEUE", 460, 470)
        phase(1, "MEMCPY_IN_FUSION_BUFFER", 470, 490)
        phase(1, "NCCL_ALLREDUCE", 490, 690)
        for loop in range(2 if tree else 0):
            up, down = 490 + 50 * loop, 590 + 50 * loop
            for _ in range(1 if rank else 2):  # the root has two children
                message("SEND", 0, *((up, up + 50) if rank else (down, down + 50)), loop)
                message("RECV", 0, *((490, down + 50) if rank else (490, up + 50)), loop)
        for chunk in range(0 if tree else 2):
            message("SEND", chunk, 490 + 100 * chunk, 590 + 100 * chunk)
            message("RECV", chunk, 490 + 100 * chunk, 590 + 100 * chunk)
        phase(1, "MEMCPY_OUT_FUSION_BUFFER", 690, 710)
        op("update", "ResourceApplyGradientDescent", 710, 50)
    return dict(traceEvents=computing), timeline, messages


def server_job(folder, steps, ahead):
    """Two workers, one server, two tensors: push 100 us, first copy 10, sum 20, merged copy 5, pull 100; acknowledgements and
    requests take 10. What begins on a worker begins by its clock and ends by the server's, and the other way round."""
    links, engine = [], []
    for pid, name in enumerate(["worker_0 -> server_0", "server_0 -> worker_0", "worker_1 -> server_0", "server_0 -> worker_1"]):
        links.append(dict(name="process_name", ph="M", pid=pid, tid=0, args=dict(name=name)))
    engine.append(dict(name="process_name", ph="M", pid=0, tid=0, args=dict(name="server_0")))
    for rank in range(2):
        place, computing = f"{folder}/host{rank}/{rank}", []
        os.makedirs(place, exist_ok=True)
        computing += [dict(ph="M", name="process_name", pid=5, args=dict(name="/device:GPU:0 (pid 5)")),
                      dict(ph="M", name="thread_name", pid=5, tid=2, args=dict(name="TensorFlow Ops"))]
        for step in range(steps):
            at = 1000 + 2000 * step
            back = 200 + 50 * rank  # the second worker is late
            for name, start, length in [("forward", 0, 100), ("grad1", 100, back - 100), ("grad0", back, 100), ("update", 920, 50)]:
                computing.append(dict(ph="X", pid=5, tid=2, name=name, ts=at + start, dur=length, args=dict(long_name=name + ":X", group_id=step)))
        with gzip.open(f"{place}/trace.json.gz", "wt") as out:
            json.dump(dict(traceEvents=computing), out)
        with open(f"{place}/gradient_name_list.json", "w") as out:
            json.dump(dict(gradient_name_list=["b", "a"], model_name="m"), out)
    for step in range(steps):
        at = 1000 + 2000 * step

        def message(rank, up, name, start, end):
            pid = 2 * rank + (0 if up else 1)
            links.append(dict(name=name, ph="B", ts=at + start + (0 if up else ahead), pid=pid, tid=0))
            links.append(dict(name=name, ph="E", ts=at + end + (ahead if up else 0), pid=pid, tid=0))

        def work(name, start, end):
            engine.append(dict(name=name, ph="B", ts=at + start + ahead, pid=0, tid=1))
            engine.append(dict(name=name, ph="E", ts=at + end + ahead, pid=0, tid=1))

        for tensor, ready in (("Comm.grad1~PART0", [200, 250]), ("Comm.grad0", [300, 350])):
            for rank in range(2):
                start = ready[rank]
                message(rank, True, tensor + ".PUSH", start, start + 100)
                message(rank, False, tensor + ".PUSH", start + 100, start + 110)
                message(rank, True, tensor + ".PULL", start + 110, start + 120)
            summed = ready[1] + 120
            work(tensor + ".COPY_FIRST", ready[0] + 100, ready[0] + 110)
            work(tensor + ".SUM", ready[1] + 100, summed)
            work(tensor + ".COPY_MERGED", summed, summed + 5)
            for rank in range(2):  # both on the server's wire, the first tensor before the second
                start = (375 if "grad1" in tensor else 575) + 100 * rank
                message(rank, False, tensor + ".PULL", start, start + 100)
    for name, content in (("comm_timeline", links), ("server_timeline", engine)):
        with open(f"{folder}/{name}.json", "w") as out:
            json.dump(content, out)


def main(folder, *words):
    options = dict(rings=1, chunks=1, steps=2, tree=0, server=0, ahead=0)
    for word in words:
        key, value = word.split("=")
        options[key] = int(value)
    if options["server"]:
        server_job(folder, options["steps"], options["ahead"])
        return
    for rank in range(3 if options["tree"] else 2):
        place = f"{folder}/host{rank}/{rank}"
        os.makedirs(place, exist_ok=True)
        computing, timeline, messages = rank_files(min(rank, 1), options["steps"], options["chunks"], options["tree"])
        with gzip.open(f"{place}/trace.json.gz", "wt") as out:
            json.dump(computing, out)
        files = {"comm.json": timeline, "gradient_name_list.json": dict(gradient_name_list=["b", "a"], model_name="m")}
        if options["chunks"]:
            files["comm_detail.json"] = messages
        if options["rings"]:
            files["nccl_rank_graph.json"] = dict(RealRing={"0": "0[1000] -> 1[2000] via NET,1[2000] -> 0[1000] via NET"}, Tree={})
            if options["tree"]:
                where = "-1/-1/-1->%d->0" % rank if rank else "1/2/-1->0->-1"
                files["nccl_rank_graph.json"]["Tree"]["-1"] = "[0] %s|%s" % (where, "->".join(reversed(where.split("->"))))
        for name, content in files.items():
            with open(f"{place}/{name}", "w") as out:
                json.dump(content, out)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
