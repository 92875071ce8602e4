#!/usr/bin/env python3
"""What layers keep for their backward pass: Paceline's profiles against PyTorch's autograd.

Layers are written as the software that a profile stands for writes them, and run on a CPU; saved_tensors_hooks sees
every tensor that autograd saves, and each storage counts once. Two layers more make the activations of `paceline
simulate` larger by what two layers keep. What a GPU's kernels keep and a CPU's do not is a function of its own here:
fused attention (queries, keys, values, output, a number per row) and dropout (a byte per element).

Not counted in Paceline, and left out here: the one or two numbers per token of each norm.
"""
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

if importlib.util.find_spec("torch") is None:
    print("not tested: python3 has no torch (Debian: python3-torch)")
    sys.exit(0)
import torch
import torch.nn.functional as F

PACELINE = os.environ["PACELINE"]
TOKENS, BATCH = 192, 8
WIDTH, HEADS, INNER, WORDS = 128, 4, 320, 64
SIZE = WIDTH // HEADS
BF16 = torch.bfloat16


class Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out, rows = torch.empty_like(q), torch.empty(q.shape[:3])
        ctx.save_for_backward(q, k, v, out, rows)
        return out


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()


def weight(*shape, wide=False):
    return torch.zeros(shape, dtype=torch.float32 if wide else BF16, requires_grad=True)


def rms_norm(x, scale):
    """In fp32 steps. The mean is a sum: PyTorch 1.13's keeps its input, later ones' do not."""
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).sum(-1, keepdim=True) / WIDTH + 1e-6)
    return scale * wide.to(x.dtype)


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def heads(x):
    return x.view(BATCH, TOKENS, -1, SIZE).transpose(1, 2)


def copied(x, times):
    return x[:, :, None].expand(BATCH, -1, times, TOKENS, SIZE).reshape(BATCH, -1, TOKENS, SIZE)


def attend(q, k, v, fused, wide, dropout):
    if fused:
        out = Fused.apply(q, k, v)
    else:
        if k.shape[1] < q.shape[1]:  # keys and values of shared heads are copied, one for each query head
            k, v = (copied(x, q.shape[1] // x.shape[1]) for x in (k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(SIZE)
        scores = scores + torch.zeros(TOKENS, TOKENS, dtype=BF16)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32 if wide else None)
        if dropout:
            weights = Dropout.apply(weights)
        out = torch.matmul(weights.to(BF16), v)
    return out.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH)


class Llama:
    def __init__(self, shared=1, **how):
        self.how = how
        self.norms = [weight(WIDTH) for _ in range(2)]
        self.qkvo = [weight(n, WIDTH) for n in (WIDTH, WIDTH // shared, WIDTH // shared, WIDTH)]
        self.gate, self.up, self.down = weight(INNER, WIDTH), weight(INNER, WIDTH), weight(WIDTH, INNER)
        self.turns = torch.zeros(TOKENS, SIZE, dtype=BF16)

    def parameters(self):
        return [*self.norms, *self.qkvo, self.gate, self.up, self.down, self.turns]

    def __call__(self, x):
        normed = rms_norm(x, self.norms[0])
        q, k, v = (heads(F.linear(normed, w)) for w in self.qkvo[:3])
        q, k = rotate(q, self.turns, self.turns), rotate(k, self.turns, self.turns)
        x = x + F.linear(attend(q, k, v, **self.how), self.qkvo[3])
        normed = rms_norm(x, self.norms[1])
        return x + F.linear(F.silu(F.linear(normed, self.gate)) * F.linear(normed, self.up), self.down)


class Gpt:
    """Under autocast weights and the residual stream are in fp32, products cast what they read, each for itself; and
    queries, keys and values are products of their own, as BERT's are."""

    def __init__(self, autocast=False, steps=False, **how):
        self.how, self.autocast, self.steps = how, autocast, steps
        self.norms = [weight(WIDTH, wide=autocast) for _ in range(4)]
        self.weights = [weight(n, m) for n, m in ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (INNER, WIDTH), (WIDTH, INNER))]
        self.biases = [weight(n) for n in (3 * WIDTH, WIDTH, INNER, WIDTH)]

    def parameters(self):
        return [*self.norms, *self.weights, *self.biases]

    def product(self, x, which):
        return F.linear(x.to(BF16), self.weights[which], self.biases[which])

    def drop(self, x):
        return Dropout.apply(x) if self.how["dropout"] else x

    def __call__(self, x):
        normed = F.layer_norm(x, (WIDTH,), *self.norms[:2])
        if self.autocast:
            parts = [F.linear(normed.to(BF16), w) for w in self.weights[0].split(WIDTH)]
        else:
            parts = self.product(normed, 0).split(WIDTH, 2)
        q, k, v = (heads(part) for part in parts)
        x = x + self.drop(self.product(attend(q, k, v, **self.how), 1))
        inner = self.product(F.layer_norm(x, (WIDTH,), *self.norms[2:]), 2)
        if self.steps:
            active = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * torch.pow(inner, 3))))
        else:
            active = F.gelu(inner)
        return x + self.drop(self.product(active, 3))


def kept(make, n):
    layers = [make() for _ in range(n)]
    stay = {p.storage().data_ptr() for layer in layers for p in layer.parameters()}
    seen = {}

    def pack(tensor):
        storage = tensor.storage()
        rows = tensor.dim() > 0 and tensor.shape[-1] == 1
        if storage.data_ptr() not in stay and tensor.numel() > 1 and not rows:
            seen.setdefault(storage.data_ptr(), (storage.nbytes(), tensor))
        return tensor

    wide = getattr(layers[0], "autocast", False)
    x = torch.zeros(BATCH, TOKENS, WIDTH, dtype=torch.float32 if wide else BF16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for layer in layers:
            x = layer(x)
    return sum(n_bytes for n_bytes, _ in seen.values())


def config(folder, kind, n, dropout, shared):
    if kind is Llama:
        text = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=WIDTH, intermediate_size=INNER,
                    num_attention_heads=HEADS, num_key_value_heads=HEADS // shared, num_hidden_layers=n,
                    vocab_size=WORDS, max_position_embeddings=TOKENS, tie_word_embeddings=False, hidden_act="silu",
                    rms_norm_eps=1e-6)
    else:
        text = dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", n_embd=WIDTH, n_layer=n, n_head=HEADS,
                    n_positions=TOKENS, vocab_size=WORDS, n_inner=INNER, activation_function="gelu_new",
                    **{name: 0.1 * dropout for name in ("attn_pdrop", "embd_pdrop", "resid_pdrop")})
    path = os.path.join(folder, f"{kind.__name__}{n}.json")
    with open(path, "w") as file:
        json.dump({**text, "torch_dtype": "bfloat16"}, file)
    return path


def told(folder, kind, n, framework, fused, dropout, shared):
    model = config(folder, kind, n, dropout, shared)
    out = subprocess.run([PACELINE, "simulate", "--platform", "dgx-h100:1", "--model", model, "--gbs",
                          str(8 * BATCH), "--seq", str(TOKENS), "--dtype", "bf16", "--framework", framework,
                          "--attention", "flash" if fused else "unfused", "--strategy", f"pp=1,dp=8,tmp=1,mbs={BATCH}",
                          "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return json.loads(out.stdout)["mem_activations_bytes"]


CASES = [
    (Llama, "torch-own", dict(fused=True, wide=True, dropout=False), {}),
    (Llama, "torch-own", dict(fused=False, wide=True, dropout=False), {}),
    (Llama, "torch-own", dict(fused=True, wide=True, dropout=False), dict(shared=2)),
    (Llama, "torch-own", dict(fused=False, wide=True, dropout=False), dict(shared=2)),
    (Gpt, "torch-own", dict(fused=True, wide=True, dropout=False), {}),
    (Gpt, "torch-own", dict(fused=False, wide=True, dropout=False), {}),
    (Gpt, "torch-own", dict(fused=False, wide=True, dropout=True), {}),
    (Gpt, "torch-fsdp", dict(fused=False, wide=False, dropout=False), {}),
    (Gpt, "torch-fsdp", dict(fused=False, wide=False, dropout=True), {}),
    (Gpt, "deepspeed", dict(fused=True, wide=False, dropout=False), {}),
    (Llama, "torchtune", dict(fused=True, wide=False, dropout=False), {}),
    (Gpt, "torch-ddp", dict(fused=True, wide=True, dropout=True), dict(autocast=True)),
    (Gpt, "torch-ddp", dict(fused=False, wide=True, dropout=True), dict(autocast=True)),
    (Gpt, "torch-ddp", dict(fused=False, wide=True, dropout=False), dict(autocast=True)),
]


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, framework, how, more in CASES:
            saved = (kept(lambda: kind(**how, **more), 4) - kept(lambda: kind(**how, **more), 2)) / 2
            shared = more.get("shared", 1)
            own = {n: told(folder, kind, n, framework, how["fused"], how["dropout"], shared) for n in (2, 4)}
            counted = (own[4] - own[2]) / 2
            words = " ".join(word for word, says in {**how, **more}.items() if says)
            print(f"{kind.__name__:6} {framework:21} {words:30} {saved:.0f} bytes a layer, told {counted:.0f}"
                  f"{'' if counted == saved else '  WRONG'}")
            wrong += counted != saved
    sys.exit(wrong > 0)


main()
