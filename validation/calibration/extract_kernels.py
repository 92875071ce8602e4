#!/usr/bin/env python3
"""Makes attention.csv.gz, kernels.csv.gz, stage_times.csv and layer_times.csv from published kernel timings (see README.md here).

usage: extract_kernels.py FOLDER_OF_TABLES [OUTPUT_FOLDER]

FOLDER_OF_TABLES holds attention_prefill_aiconfigurator, sdpa_cudnn, transformer_ops_sailor, norms_cudnn and
pp_stage_times_vocabpar (.csv.gz). Rows
are chosen by the rules below and otherwise copied; byte counts of memory-bound ops are computed from their shapes. Python's
standard library only.
"""
import csv
import gzip
import io
import sys
import zlib

# (gpu, kernel_source) of the prefill table -> device, kernel. Rule: of the kernels of the FlashAttention library itself
# that the serving stacks timed on a GPU, the stack with the smaller median time over the shapes that both timed, because a
# stack can add to the kernel (paging, cache writes) and not take away.
PREFILL = {
    ("NVIDIA A100-SXM4-80GB", "flash_attention"): ("A100-SXM4-80GB", "flash2", 108),
    ("NVIDIA H100 80GB HBM3", "fa3"): ("H100-SXM5-80GB", "flash3", 132),
    ("NVIDIA H200", "fa3"): ("H200-SXM5-141GB", "flash3", 132),
    ("NVIDIA L40S", "vllm_flash_attn_fa2"): ("L40S", "flash2", 142),
}
# The table's B200 rows are left out: timed from a host, 0.1 ms (forward) to 0.4 ms (backward) at least.
SDPA = {"H200": ("H200-SXM5-141GB", 132), "GB200": ("GB200", 152), "GB300": ("GB300", 160)}
SDPA_KERNELS = {"cudnn": "cudnn", "pyt_cudnn": "cudnn", "cudnn_fe": "cudnn", "pyt_flash_attention": "flash2"}
SAILOR = {"A100-40": "A100-SXM4-40GB", "V100-16": "V100-SXM2-16GB", "GH-96": "GH200-96GB"}
NORMS = {"H200": "H200-SXM5-141GB", "GB200": "GB200", "GB300": "GB300"}
# Thinning: a row of the prefill table stays if the hash of its shape is a multiple of this.
KEEP_EVERY = 8
SHORTEST = 64  # sequences below it are the business of decoding kernels


def table(folder, name):
    with gzip.open(f"{folder}/{name}.csv.gz", "rt", newline="") as file:
        yield from csv.DictReader(file)


def prefill(folder):
    for row in table(folder, "attention_prefill_aiconfigurator"):
        known = PREFILL.get((row["gpu"], row["kernel_source"]))
        shape = [int(float(row[key])) for key in ("batch", "seq_len", "n_heads", "n_kv_heads", "head_dim")]
        if known is None or float(row["window_size"] or 0) != 0 or shape[1] < SHORTEST:
            continue
        if zlib.crc32(" ".join(map(str, shape)).encode()) % KEEP_EVERY != 0:
            continue
        device, kernel, sms = known
        yield [device, sms, kernel, "forward", "causal", 0, *shape, 1, round(1e3 * float(row["time_ms_forward"]), 3)]


def sdpa(folder):
    for row in table(folder, "sdpa_cudnn"):
        kernel = SDPA_KERNELS.get(row["backend"])
        if kernel is None or row["gpu"] not in SDPA or row["dtype"] not in ("", "bfloat16"):
            continue
        if row["deterministic"] == "True" or row["head_dim_qk"] != row["head_dim_vo"] or not row["time_ms"]:
            continue
        device, sms = SDPA[row["gpu"]]
        if kernel == "cudnn" and device in ("GB200", "GB300") and row["backend"] != "cudnn":
            continue  # older cuDNN than the rows named cudnn
        mask = "full" if row["attn_mask"] == "no_mask" else "causal"
        shape = [int(float(row[key])) for key in ("batch", "q_seqlen", "n_q_heads", "n_kv_heads", "head_dim_qk")]
        window = int(float(row["sliding_window"] or 0))
        pass_name = {"fwd": "forward", "bwd": "backward"}[row["pass"]]
        if float(row["time_ms"]) > 0:
            yield [device, sms, kernel, pass_name, mask, window, *shape, 0, round(1e3 * float(row["time_ms"]), 3)]


# Shah et al. 2024 (FlashAttention-3, arXiv 2407.08608), figures 5 and 6: TFLOP/s printed above the bars of FlashAttention 2 on an
# H100 SXM5, fp16, for 512 to 16k tokens, 16k tokens and a width of 2,048 in all; half of the square is counted with a causal mask,
# five products of it in the backward pass.
HOPPER_FLASH2 = {("forward", "full", 64): (282, 306, 318, 321, 322, 324),
                 ("forward", "full", 128): (309, 350, 362, 368, 370, 370),
                 ("forward", "causal", 64): (180, 229, 262, 284, 295, 299),
                 ("forward", "causal", 128): (191, 260, 298, 319, 333, 335),
                 ("backward", "full", 64): (198, 238, 264, 279, 287, 291),
                 ("backward", "full", 128): (214, 260, 291, 310, 318, 322)}


def hopper_flash2():
    for (pass_name, mask, size), rates in HOPPER_FLASH2.items():
        for i, tflops in enumerate(rates):
            seq, heads = 512 << i, 2048 // size
            batch = 16384 // seq
            flops = 4 * batch * seq * seq * heads * size / (2 if mask == "causal" else 1) * (2.5 if pass_name == "backward" else 1)
            yield ["H100-SXM5-80GB", 132, "flash2", pass_name, mask, 0, batch, seq, heads, heads, size, 0,
                   round(flops / tflops / 1e6, 3)]


def sailor(folder):
    """Bytes of each op: what its kernel reads and writes, 16-bit. The causal softmax kernel of Megatron reads the lower half of
    the square and writes all of it. Elementwise: the activation function, the largest such op of a layer."""
    for row in table(folder, "transformer_ops_sailor"):
        if row["gpu"] not in SAILOR or row["precision"] != "fp16" or row["tp_algo"] != "0":
            continue
        mbs, tp, s, h = int(row["mbs"]), int(row["tp"]), int(row["seq_len"]), int(row["hidden"])
        act, ffn = 2 * mbs * s * h, 2 * mbs * s * int(row["ffn_hidden"]) // tp
        square = mbs * int(row["n_heads"]) // tp * s * s
        kinds = {
            "enc-1st-layernorm": ("norm", 2 * act, 3 * act),
            "enc-2nd-layernorm": ("norm", 2 * act, 3 * act),
            "enc-attention-softmax": ("softmax", 3 * square, 4 * square),
            "enc-MLP-gelu": ("elementwise", 2 * ffn, 3 * ffn),
        }
        if row["op"] not in kinds:
            continue
        kind, forward, backward = kinds[row["op"]]
        for name, size, key in (("forward", forward, "fwd_us"), ("backward", backward, "bwd_us")):
            if float(row[key] or 0) > 0:
                yield [SAILOR[row["gpu"]], kind, name, size, 1, float(row[key])]


def norms(folder):
    for row in table(folder, "norms_cudnn"):
        if row["gpu"] not in NORMS or row["backend"] != "pytorch" or not row["time_ms"]:
            continue
        rows, width = int(row["N"]), int(row["C"])
        if width < 1024:
            continue  # norms of single heads, not of the hidden state
        name, tensors = ("forward", 2) if row["pass"] == "fwd" else ("backward", 3)
        # Times are printed in microseconds, bandwidth with five digits: the time follows from the latter.
        size = tensors * 2 * rows * width
        yield [NORMS[row["gpu"]], "norm", name, size, 0, round(size / float(row["GBps"]) / 1e3, 3)]


def stages(folder):
    for row in table(folder, "pp_stage_times_vocabpar"):
        if row["schedule"] == "base":
            yield [*(int(row[key]) for key in ("seq_len", "vocab", "stage")), int(row["fwd_us"]), int(row["bwd_us"])]


def layers(folder):
    """Forward of one transformer layer: the sum of its 13 ops. (The backward of its matrix products is the data gradient alone: it takes
    as long as the forward.) Left out: a row of 30 s, where memory was paged."""
    total = {}
    for row in table(folder, "transformer_ops_sailor"):
        if SAILOR.get(row["gpu"], "GH200-96GB") == "GH200-96GB" or row["precision"] != "fp16" or row["tp_algo"] != "0":
            continue
        if row["tp"] != "1" or not row["op"].startswith("enc-"):
            continue
        key = (SAILOR[row["gpu"]], *(int(row[name]) for name in ("hidden", "n_heads", "seq_len", "mbs")))
        total[key] = total.get(key, 0) + float(row["fwd_us"])
    for key, forward in total.items():
        if forward < 1e7:
            yield [*key, round(forward)]


def write(path, remarks, header, rows):
    text = io.StringIO()
    text.writelines(f"# {remark}\n" for remark in remarks)
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    if not path.endswith(".gz"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.getvalue())
        return
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        packed.write(text.getvalue().encode())


def main():
    folder, output = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "."
    write(f"{output}/attention.csv.gz",
          ["Times of fused attention, 16 bit. Rules of choice: extract_kernels.py.",
           "Sources: ai-dynamo/aiconfigurator@095f58a51c4c, context_attention_perf (causal forward passes; the serving stack "
           "writes keys and values into its cache: cached = 1);",
           "NVIDIA/cudnn-frontend@fb682ce761a2, benchmark/sdpa_benchmark_training (forward and backward);",
           "Shah et al. 2024 (arXiv 2407.08608), figures 5 and 6: FlashAttention 2 on H100."],
          "device multiprocessors kernel pass mask window batch seq heads kv_heads head_size cached time_us".split(),
          sorted([*prefill(folder), *sdpa(folder), *hopper_flash2()]))
    write(f"{output}/kernels.csv.gz",
          ["Times of memory-bound kernels, 16 bit. Rules of choice and byte counts: extract_kernels.py.",
           "Sources: eth-easl/sailor@cf2c8e3cc53c, Aceso profiler (host_bound = 1: timed from Python, where small ops cost what "
           "the host needs);",
           "NVIDIA/cudnn-frontend@df73764adb98, benchmark/norms (PyTorch's own norms)."],
          "device kind pass bytes host_bound time_us".split(), sorted([*sailor(folder), *norms(folder)]))
    write(f"{output}/stage_times.csv",
          ["Forward and backward of one microbatch (one sequence) by pipeline stage: GPT with 32 layers, hidden 3072, 24 heads, on 8 "
           "A100-SXM4-80GB, 4 layers a stage, one-forward-one-backward.",
           "Source: sail-sg/VocabularyParallelism@6191c3bff018, artifact/exp_one_host.csv, schedule base."],
          "seq vocab stage forward_us backward_us".split(), sorted(stages(folder)))
    write(f"{output}/layer_times.csv",
          ["Forward of one transformer layer (Megatron, unfused attention, fp16, one GPU): sums of the ops of "
           "eth-easl/sailor@cf2c8e3cc53c, Aceso profiler."],
          "device hidden heads seq mbs forward_us".split(), sorted(layers(folder)))


if __name__ == "__main__":
    main()
