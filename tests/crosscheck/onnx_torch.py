#!/usr/bin/env python3
"""ONNX files as torch writes them: the training program that is made of a file has the loss, and every gradient, that torch's autograd
has on the same weights and inputs. Both compute in double; constants stand in the file as fp32, so that they may be apart by a unit of
that, 1e-7 of a tensor's largest element."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings

for needed in "torch", "onnx", "numpy":
    if importlib.util.find_spec(needed) is None:
        print(f"not tested: python3 has no {needed} (Debian: python3-{needed})")
        sys.exit(0)
import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F
from torch import nn

SOURCE, PACELINE = os.environ.get("SOURCE_DIR", "."), os.environ["PACELINE"]
TOOL = os.environ["BUILD_DIR"] + "/tests/onnx_values_tool"
sys.path.insert(0, SOURCE + "/tests/support")
from onnx_modules import (VGG, GPT2, Bert, Encoder, Gates, GPT2Cached, Joined, Larger, Llama, LlamaCached, Normed, Padded, Relative,
                          ResNet, SamePadded, UNet, ViT, Windowed, export, export_cached)  # noqa: E402

warnings.simplefilter("ignore")
torch.manual_seed(5)
BATCH, SEQ = 3, 10


def tokens(below, batch=BATCH):
    return torch.randint(0, below, (batch, SEQ))


def words(v=90):
    return {"input_ids": tokens(v)}


def bert_inputs():
    mask = torch.ones(BATCH, SEQ, dtype=torch.long)
    mask[1, 6:] = 0
    return {"input_ids": tokens(99), "attention_mask": mask, "token_type_ids": tokens(2)}


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(24, 24), nn.ReLU())])

    def forward(self, x):
        return self.layers(x)


class Fused(nn.Module):
    """nn.MultiheadAttention's and others' ways: one product cut into three, slices of weights, einsum, sigmoid, sqrt, where."""

    def __init__(self, h=16, n=2):
        super().__init__()
        self.embed, self.n, self.d = nn.Embedding(20, h), n, h // n
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.in_proj_weight = nn.Parameter(torch.randn(3 * h, h) * 0.1)
        self.gate, self.head = nn.Linear(h, 2 * h), nn.Linear(h, 20)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        b, t, h = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.n, self.d).permute(2, 0, 3, 1, 4).unbind(0)
        p = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * self.d**-0.5, dim=-1)
        x = x + self.out(torch.einsum("bhij,bhjd->bihd", p, v).reshape(b, t, h))
        w_q, w_k, w_v = self.in_proj_weight.chunk(3)
        x = x + torch.sigmoid(F.linear(x, w_q)) * F.linear(x, w_k) + torch.sqrt(F.linear(x, w_v) ** 2 + 1)
        a, g = self.gate(x).chunk(2, dim=-1)
        return self.head((a * F.gelu(g)).mean(dim=1))


CASES = {  # module, inputs, options of the export, tolerance
    "gpt2": (lambda: GPT2(), words, {}, 1e-7),
    "gpt2-opset17": (lambda: GPT2(layers=2), words, {"opset": 17}, 1e-7),
    "gpt2-one-size": (lambda: GPT2(layers=2), words, {"dynamic": False, "opset": 11}, 1e-7),
    "llama": (lambda: Llama(), words, {}, 1e-7),
    "llama-many-groups": (lambda: Llama(groups=4, layers=2), words, {"dynamic": False}, 1e-7),
    "bert": (lambda: Bert(), bert_inputs, {}, 1e-7),
    "resnet": (lambda: ResNet(8, (2, 2), 10), lambda: {"x": torch.randn(BATCH, 3, 32, 32)}, {"train": True}, 1e-7),
    "vgg": (lambda: VGG((4, 4, 0, 8, 0), 16, 10, 2), lambda: {"x": torch.randn(BATCH, 3, 8, 8)}, {}, 1e-7),
    "plain": (Plain, lambda: {"x": torch.randn(BATCH, 24)}, {}, 1e-7),
    "joined": (Joined, lambda: {"x": torch.randn(BATCH, 3, 6, 6)}, {}, 1e-7),
    "joined-one-sample": (Joined, lambda: {"x": torch.randn(BATCH, 3, 6, 6)}, {"one": True}, 1e-7),
    "vit-one-sample": (ViT, lambda: {"x": torch.randn(BATCH, 3, 8, 8)}, {"one": True}, 1e-7),
    "encoder-one-sample": (Encoder, lambda: words(30), {"one": True}, 1e-7),
    "gpt2-one-sample": (lambda: GPT2(layers=2), words, {"one": True}, 1e-7),
    "bert-one-sample": (lambda: Bert(), bert_inputs, {"one": True}, 1e-7),
    "llama-one-sample": (lambda: Llama(layers=2), words, {"one": True}, 1e-7),
    "vgg-one-sample": (lambda: VGG((4, 4, 0, 8, 0), 16, 10, 2), lambda: {"x": torch.randn(BATCH, 3, 8, 8)}, {"one": True}, 1e-7),
    # one sample in a file that takes any number: extents do not tell which axis of a reshape it is in
    "encoder-of-one": (Encoder, lambda: {"input_ids": tokens(30, 1)}, {}, 1e-7),
    "llama-of-one": (lambda: Llama(layers=2), lambda: {"input_ids": tokens(90, 1)}, {}, 1e-7),
    "vit-of-one": (ViT, lambda: {"x": torch.randn(1, 3, 8, 8)}, {}, 1e-7),
    "gpt2-cached": (lambda: GPT2Cached(layers=2), words, {"cache": (4, 8, 2)}, 1e-7),
    "llama-cached": (lambda: LlamaCached(layers=2), words, {"cache": (2, 8, 2)}, 1e-7),
    "llama-cached-tables": (lambda: LlamaCached(tables=True, layers=2), words, {"cache": (2, 8, 2)}, 1e-7),
    "padded": (Padded, lambda: {"x": torch.randn(BATCH, 3, 9, 9)}, {}, 1e-7),
    "same-padded": (SamePadded, lambda: {"x": torch.randn(BATCH, 3, 8, 7)}, {}, 1e-7),
    "gates": (Gates, lambda: {"x": torch.randn(BATCH, 6)}, {}, 1e-7),
    "gates-opset16": (Gates, lambda: {"x": torch.randn(BATCH, 6)}, {"opset": 16}, 1e-7),
    "normed": (Normed, lambda: {"x": torch.randn(BATCH, 3, 9, 9)}, {"train": True}, 1e-7),
    "normed-one-sample": (Normed, lambda: {"x": torch.randn(BATCH, 3, 9, 9)}, {"train": True, "one": True}, 1e-7),
    "larger": (Larger, lambda: {"x": torch.randn(BATCH, 3, 7, 6)}, {}, 1e-7),
    "unet": (UNet, lambda: {"x": torch.randn(BATCH, 3, 12, 12)}, {"train": True}, 1e-7),
    "windows": (lambda: Windowed(biased=False), lambda: {"x": torch.randn(BATCH, 3, 8, 8)}, {}, 1e-7),
    "windows-biased": (Windowed, lambda: {"x": torch.randn(BATCH, 3, 8, 8)}, {"folds": False}, 1e-7),
    "relative": (Relative, lambda: words(30), {"folds": False}, 1e-7),
    "fused": (Fused, lambda: {"input_ids": tokens(20)}, {"folds": False}, 1e-7),
}


def loss_of(module, output, targets):
    if targets is None:
        return output.mean()
    return F.cross_entropy(output.reshape(-1, output.size(-1)), targets.reshape(-1))


def check(name, folder):
    make, inputs_of, options, tolerance = CASES[name]
    options = dict(options)
    module, inputs = make(), inputs_of()
    batch = len(next(iter(inputs.values())))
    path = f"{folder}/{name}.onnx"
    for parameter in module.parameters():  # no two are equal by accident
        if parameter.dim() == 1:
            parameter.data += 0.1 * torch.randn_like(parameter)
    past = []
    if "cache" in options:  # which is empty, and all tokens are seen
        past = [torch.ones(BATCH, SEQ, dtype=torch.long), torch.arange(SEQ).expand(BATCH, SEQ)]
        past += export_cached(module, BATCH, SEQ, *options["cache"], path)
    elif hasattr(module, "write"):
        module.write(path)
    elif options.pop("one", False):  # which the file says, and is run with more
        export(module, {key: value[:1] for key, value in inputs.items()}, path, dynamic=False, **options)
    else:
        export(module, inputs, path, **options)
    module = module.double().train(options.get("train", False))
    reals = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    output = module(*reals.values(), *past)
    output = output[0] if past else output
    targets = None if name in ("plain", "larger", "unet") else torch.randint(0, output.size(-1), output.shape[:-1])
    loss = loss_of(module, output, targets)
    loss.backward()
    for key, value in list(reals.items()) + ([("targets", targets)] if targets is not None else []):
        value.double().numpy().tofile(f"{folder}/{key}.f64")
    for key, numbers in (module.numbers(SEQ) if hasattr(module, "numbers") else {}).items():  # constants of the file
        numbers.double().numpy().tofile(f"{folder}/{key}.f64")
    done = subprocess.run([TOOL, path, folder, str(batch), str(SEQ if "input_ids" in inputs else 1)], capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    ours = float(lines[0][1])
    assert abs(ours - loss.item()) <= tolerance * abs(loss.item()), (name, ours, loss.item())
    worst = compare_gradients(name, folder, module, onnx.load(path), lines[1:], tolerance)
    print(f"{name}: loss {ours:.9g}, torch {loss.item():.9g}; {len(lines) - 1} gradients, apart by at most {worst:.1e}")


def compare_gradients(name, folder, module, model, lines, tolerance):
    held = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in held:
            held[node.output[0]] = held[node.input[0]]
    named, worst, seen = dict(module.named_parameters()), 0, set()
    for _, index, source in lines:
        gradient = np.fromfile(f"{folder}/gradient.{index}.f64").reshape(held[source].shape)
        if source not in named:  # a product's weights, which the exporter has turned over and named after the product
            turned = held[source].T.astype(np.float64)
            source = next(k for k, p in named.items() if k not in seen and p.shape == turned.shape and np.array_equal(p.detach().numpy(), turned))
            gradient = gradient.T
        seen.add(source)
        theirs = named[source].grad.numpy()
        largest = max(np.abs(theirs).max(), 1e-3 * max(p.grad.abs().max().item() for p in named.values() if p.grad is not None))
        apart = np.abs(gradient - theirs).max() / largest
        assert apart <= tolerance, (name, source, apart)
        worst = max(worst, apart)
    assert seen == set(named), (name, set(named) - seen)
    return worst


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as scratch:
            check(case, scratch)
