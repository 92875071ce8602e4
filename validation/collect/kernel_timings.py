#!/usr/bin/env python3
"""Times fused attention and memory-bound kernels on a CUDA GPU with PyTorch, for `paceline calibrate`.

    kernel_timings.py --device MYGPU --attention attention.csv --kernels kernels.csv
    paceline calibrate --attention attention.csv --kernels kernels.csv --base platforms/devices/MYGPU.json -o mine.json

Attention: scaled_dot_product_attention, forward and backward, causal and not, with each backend that this PyTorch and GPU
have (flash2: FLASH_ATTENTION, cudnn: CUDNN_ATTENTION), and flash3 where flash_attn_interface is installed. Memory-bound
kernels: layer norm, softmax and GELU, forward and backward; bytes are what the kernel must read and write. (PyTorch's softmax
reads the whole square. Megatron's causal one, which Paceline counts with half a read, is not among PyTorch's.) Each call is timed by CUDA events, the median of --repeats after a warm-up; before each a buffer
larger than the L2 cache is overwritten, which also keeps the GPU busy while the host queues the call, so that no launch
latency of the host is timed. Takes some ten minutes on an A100. Nothing else should use the GPU meanwhile.
"""
import argparse
import csv
import itertools
import statistics
import sys

ATTENTION = "device,multiprocessors,kernel,pass,mask,window,batch,seq,heads,kv_heads,head_size,cached,time_us".split(",")
KERNELS = "device,kind,pass,bytes,host_bound,time_us".split(",")
SEQUENCES = [128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384]
HEADS = [1, 4, 8, 16, 24, 32, 64, 128]
SIZES = [64, 128, 256]
ROWS = [128, 512, 2048, 4096, 8192, 16384, 32768]
WIDTHS = [1024, 2048, 4096, 8192]


def calls(most_flops=2e13, most_elements=1 << 28):
    """(mask, batch, seq, heads, head size) of every attention call that is worth timing."""
    for mask, seq, heads, size, batch in itertools.product(("causal", "full"), SEQUENCES, HEADS, SIZES, (1, 4)):
        if batch * heads * seq * size <= most_elements and 4 * batch * heads * seq * seq * size <= most_flops:
            yield mask, batch, seq, heads, size


class Timer:
    def __init__(self, torch, repeats):
        self.torch, self.repeats = torch, repeats
        device = torch.cuda.get_device_properties(0)
        self.flush = torch.empty(max(4 * getattr(device, "L2_cache_size", 0), 256 << 20), dtype=torch.uint8, device="cuda")

    def median_us(self, run):
        torch = self.torch
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(self.repeats)]
        for start, end in events:
            self.flush.zero_()
            start.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) * 1e3 for start, end in events)


def attention_kernels(torch):
    """name -> function of q, k, v [batch, heads, seq, size] and causal."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def backend(chosen):
        def run(q, k, v, causal):
            with sdpa_kernel([chosen]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run

    kernels = {"flash2": backend(SDPBackend.FLASH_ATTENTION)}
    if hasattr(SDPBackend, "CUDNN_ATTENTION"):
        kernels["cudnn"] = backend(SDPBackend.CUDNN_ATTENTION)
    try:
        import flash_attn_interface

        def flash3(q, k, v, causal):
            out = flash_attn_interface.flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=causal)
            return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

        kernels["flash3"] = flash3
    except ImportError:
        pass
    return kernels


def time_attention(torch, timer, options, writer):
    device = torch.cuda.get_device_properties(0)
    for name, kernel in attention_kernels(torch).items():
        for mask, batch, seq, heads, size in calls():
            shape = (batch, heads, seq, size)
            q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            try:
                out = kernel(q, k, v, mask == "causal")
            except RuntimeError as error:  # this backend does not do this shape here
                print(f"{name} {shape}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            grad = torch.randn_like(out)
            with torch.no_grad():
                forward = timer.median_us(lambda: kernel(q, k, v, mask == "causal"))
            backward = timer.median_us(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
            for pass_name, time_us in (("forward", forward), ("backward", backward)):
                writer.writerow([options.device, device.multi_processor_count, name, pass_name, mask, 0, batch, seq, heads, heads,
                                 size, 0, f"{time_us:.4g}"])


def memory_ops(torch, rows, width):
    """(kind, input, function, tensors moved forward, backward) in units of the input's size."""
    functional = torch.nn.functional
    x = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight, bias = (torch.ones(width, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    yield "norm", (x, weight, bias), lambda: functional.layer_norm(x, (width,), weight, bias), 2, 3
    yield "softmax", (x,), lambda: functional.softmax(x, -1), 2, 3
    yield "elementwise", (x,), lambda: functional.gelu(x), 2, 3


def time_kernels(torch, timer, options, writer):
    for rows, width in itertools.product(ROWS, WIDTHS):
        for kind, inputs, run, forward, backward in memory_ops(torch, rows, width):
            out = run()
            grad = torch.randn_like(out)
            with torch.no_grad():
                forward_us = timer.median_us(run)
            backward_us = timer.median_us(lambda: torch.autograd.grad(out, inputs, grad, retain_graph=True))
            size = 2 * rows * width
            writer.writerow([options.device, kind, "forward", forward * size, 0, f"{forward_us:.4g}"])
            writer.writerow([options.device, kind, "backward", backward * size, 0, f"{backward_us:.4g}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="name of the device profile that the timings are for")
    parser.add_argument("--attention", help="the CSV file to write timings of attention to")
    parser.add_argument("--kernels", help="the CSV file to write timings of memory-bound kernels to")
    parser.add_argument("--repeats", type=int, default=11, help="timings per call, of which the median is written")
    parser.add_argument("--list", action="store_true", help="print the calls of attention instead of timing; needs no GPU")
    options = parser.parse_args()
    if options.list:
        print(",".join(ATTENTION))
        for mask, batch, seq, heads, size in calls():
            print(",".join(map(str, ["", "", "", "", mask, 0, batch, seq, heads, heads, size, 0, ""])))
        return
    if not options.device or not (options.attention or options.kernels):
        parser.error("say --device NAME and --attention FILE, --kernels FILE or both")
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    try:
        import torch
    except ImportError:
        sys.exit("kernel_timings.py: PyTorch is not installed; see https://pytorch.org")
    if not torch.cuda.is_available():
        sys.exit("kernel_timings.py: PyTorch sees no CUDA GPU; --list prints the calls without one")
    timer = Timer(torch, options.repeats)
    for path, columns, collect in ((options.attention, ATTENTION, time_attention), (options.kernels, KERNELS, time_kernels)):
        if not path:
            continue
        with open(path, "x", newline="", encoding="utf-8") as stream:
            stream.write(f"# kernel_timings.py: torch {torch.__version__}, CUDA {torch.version.cuda}, {options.repeats} repeats\n")
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns)
            collect(torch, timer, options, writer)


if __name__ == "__main__":
    main()
