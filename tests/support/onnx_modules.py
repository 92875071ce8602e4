"""Small models as torch modules, written as the libraries write them that people export from: what torch.onnx.export makes of these
is what ONNX files look like. Debian has neither transformers nor torchvision."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Conv1D(nn.Module):  # as GPT-2 has it
    def __init__(self, out, inp):
        super().__init__()
        self.out, self.weight, self.bias = out, nn.Parameter(torch.randn(inp, out) * 0.05), nn.Parameter(torch.randn(out) * 0.1)

    def forward(self, x):
        size = x.size()[:-1] + (self.out,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)


class GPT2Attention(nn.Module):
    def __init__(self, h, heads):
        super().__init__()
        self.heads, self.h = heads, h
        self.c_attn, self.c_proj = Conv1D(3 * h, h), Conv1D(h, h)
        self.register_buffer("bias", torch.tril(torch.ones(64, 64, dtype=torch.uint8)).view(1, 1, 64, 64))
        self.register_buffer("masked_bias", torch.tensor(-1e4))

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.h // self.heads)).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.c_attn(x).split(self.h, dim=2)
        q, k, v = self.split(q), self.split(k), self.split(v)
        w = torch.matmul(q, k.transpose(-1, -2)) / (float(v.size(-1)) ** 0.5)
        mask = self.bias[:, :, k.size(-2) - q.size(-2):k.size(-2), :k.size(-2)].bool()
        w = F.softmax(torch.where(mask, w, self.masked_bias.to(w.dtype)), dim=-1)
        a = torch.matmul(w, v).permute(0, 2, 1, 3).contiguous()
        return self.c_proj(a.view(a.size()[:-2] + (self.h,)))


class GPT2Block(nn.Module):
    def __init__(self, h, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(h), GPT2Attention(h, heads), nn.LayerNorm(h)
        self.c_fc, self.c_proj = Conv1D(4 * h, h), Conv1D(h, 4 * h)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        y = self.c_fc(self.ln_2(x))
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return x + self.c_proj(y)


class GPT2(nn.Module):
    def __init__(self, v=97, h=32, heads=4, layers=3, positions=64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(v, h), nn.Embedding(positions, h)
        self.h = nn.ModuleList([GPT2Block(h, heads) for _ in range(layers)])
        self.ln_f, self.lm_head = nn.LayerNorm(h), nn.Linear(h, v, bias=False)

    def forward(self, input_ids):
        ids = input_ids.view(-1, input_ids.size(-1))
        places = torch.arange(0, ids.size(-1), dtype=torch.long, device=ids.device).unsqueeze(0).view(-1, ids.size(-1))
        x = self.wte(ids) + self.wpe(places)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class RMSNorm(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(h) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, h, heads, groups):
        super().__init__()
        self.heads, self.groups, self.d = heads, groups, h // heads
        self.q_proj, self.o_proj = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
        self.k_proj, self.v_proj = nn.Linear(h, groups * self.d, bias=False), nn.Linear(h, groups * self.d, bias=False)
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, self.d, 2).float() / self.d)))

    def repeat(self, x, b, t):
        return x[:, :, None, :, :].expand(b, self.groups, self.heads // self.groups, t, self.d).reshape(b, self.heads, t, self.d)

    def forward(self, x, mask):
        b, t, h = x.size()
        q = self.q_proj(x).view(b, t, self.heads, self.d).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.groups, self.d).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.d).transpose(1, 2)
        freqs = torch.einsum("i,j->ij", torch.arange(t, dtype=self.inv_freq.dtype), self.inv_freq)
        both = torch.cat((freqs, freqs), dim=-1)
        cos, sin = both.cos()[None, None], both.sin()[None, None]
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = self.repeat(k, b, t), self.repeat(v, b, t)
        w = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.d) + mask
        o = torch.matmul(F.softmax(w, dim=-1), v).transpose(1, 2).contiguous().reshape(b, t, h)
        return self.o_proj(o)


class LlamaBlock(nn.Module):
    def __init__(self, h, heads, groups, f):
        super().__init__()
        self.input_layernorm, self.self_attn, self.post_attention_layernorm = RMSNorm(h), LlamaAttention(h, heads, groups), RMSNorm(h)
        self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(h, f, bias=False), nn.Linear(h, f, bias=False),
                                                        nn.Linear(f, h, bias=False))

    def forward(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    def __init__(self, v=101, h=32, heads=4, groups=2, f=88, layers=3):
        super().__init__()
        self.embed_tokens = nn.Embedding(v, h)
        self.layers = nn.ModuleList([LlamaBlock(h, heads, groups, f) for _ in range(layers)])
        self.norm, self.lm_head = RMSNorm(h), nn.Linear(h, v, bias=False)

    def forward(self, input_ids):
        b, t = input_ids.shape
        mask, places = torch.full((t, t), torch.finfo(torch.float32).min), torch.arange(t)
        mask = mask.masked_fill(places < (places + 1).view(t, 1), 0.0)[None, None, :, :].expand(b, 1, t, t)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class BertLayer(nn.Module):
    def __init__(self, h, heads, f):
        super().__init__()
        self.heads, self.d = heads, h // heads
        self.query, self.key, self.value, self.dense = (nn.Linear(h, h) for _ in range(4))
        self.attention_norm, self.output_norm = nn.LayerNorm(h, eps=1e-12), nn.LayerNorm(h, eps=1e-12)
        self.intermediate, self.output = nn.Linear(h, f), nn.Linear(f, h)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.d)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        p = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.d) + mask, dim=-1)
        c = torch.matmul(p, v).permute(0, 2, 1, 3).contiguous()
        x = self.attention_norm(self.dense(c.view(c.size()[:-2] + (self.heads * self.d,))) + x)
        return self.output_norm(self.output(F.gelu(self.intermediate(x))) + x)


class Bert(nn.Module):
    def __init__(self, v=99, h=32, heads=4, f=128, layers=3, positions=64):
        super().__init__()
        self.words, self.positions, self.types = nn.Embedding(v, h), nn.Embedding(positions, h), nn.Embedding(2, h)
        self.norm, self.layer = nn.LayerNorm(h, eps=1e-12), nn.ModuleList([BertLayer(h, heads, f) for _ in range(layers)])
        self.transform, self.transform_norm, self.decoder = nn.Linear(h, h), nn.LayerNorm(h), nn.Linear(h, v)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask[:, None, None, :].to(self.norm.weight.dtype)) * -10000.0
        x = self.words(input_ids) + self.types(token_type_ids) + self.positions(self.position_ids[:, :input_ids.size(1)])
        x = self.norm(x)
        for layer in self.layer:
            x = layer(x, mask)
        return self.decoder(self.transform_norm(F.gelu(self.transform(x))))


class Bottleneck(nn.Module):
    def __init__(self, inp, w, stride, down):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inp, w, 1, bias=False), nn.BatchNorm2d(w)
        self.conv2, self.bn2 = nn.Conv2d(w, w, 3, stride, 1, bias=False), nn.BatchNorm2d(w)
        self.conv3, self.bn3 = nn.Conv2d(w, 4 * w, 1, bias=False), nn.BatchNorm2d(4 * w)
        self.downsample = nn.Sequential(nn.Conv2d(inp, 4 * w, 1, stride, bias=False), nn.BatchNorm2d(4 * w)) if down else None

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, base=64, layers=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv1, self.bn1, self.pool = nn.Conv2d(3, base, 7, 2, 3, bias=False), nn.BatchNorm2d(base), nn.MaxPool2d(3, 2, 1)
        blocks, inp = [], base
        for stage, count in enumerate(layers):
            for i in range(count):
                blocks.append(Bottleneck(inp, base * 2**stage, 2 if stage > 0 and i == 0 else 1, i == 0))
                inp = 4 * base * 2**stage
        self.blocks, self.mean, self.fc = nn.Sequential(*blocks), nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(inp, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.mean(self.blocks(self.pool(F.relu(self.bn1(self.conv1(x)))))), 1))


class VGG(nn.Module):
    def __init__(self, widths=(64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0), w=4096, classes=1000, side=7):
        super().__init__()
        layers, inp = [], 3
        for width in widths:
            layers += [nn.MaxPool2d(2, 2)] if width == 0 else [nn.Conv2d(inp, width, 3, padding=1), nn.ReLU()]
            inp = width or inp
        self.features, self.mean = nn.Sequential(*layers), nn.AdaptiveAvgPool2d((side, side))
        self.classifier = nn.Sequential(nn.Linear(inp * side * side, w), nn.ReLU(), nn.Dropout(), nn.Linear(w, w), nn.ReLU(), nn.Dropout(),
                                        nn.Linear(w, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.mean(self.features(x)), 1))


class LRN(torch.autograd.Function):
    """The op that files of AlexNet and GoogLeNet have; torch itself exports a pad and a pooling of it."""

    @staticmethod
    def forward(ctx, x, size, alpha, beta, k):
        return F.local_response_norm(x, size, alpha, beta, k)

    @staticmethod
    def symbolic(g, x, size, alpha, beta, k):
        return g.op("LRN", x, size_i=size, alpha_f=alpha, beta_f=beta, bias_f=k)


def response_norm(x, size, alpha, beta, k):
    function = LRN.apply if torch.onnx.is_in_onnx_export() else F.local_response_norm
    return function(x, size, alpha, beta, k)


class Joined(nn.Module):
    """Unequal parts behind each other whose channels are groups, as are those of what reads them; norms over neighbours of both."""

    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(12, 16, 1, groups=2), nn.Conv2d(12, 6, 3, padding=1, groups=2)
        self.groups, self.all, self.head = nn.Conv2d(22, 22, 3, groups=11), nn.Conv2d(22, 9, 1), nn.Linear(9, 5)

    def forward(self, x):
        x = response_norm(F.relu(self.stem(x)), 5, 0.3, 0.75, 1.0)
        x = torch.cat([self.a(x), self.b(x)], 1)
        x = self.all(self.groups(response_norm(x, 7, 0.2, 0.6, 2.0)))
        return self.head(response_norm(x, 3, 0.5, 0.75, 1.0).mean((2, 3)))


class ViTBlock(nn.Module):
    def __init__(self, h, heads):
        super().__init__()
        self.a, self.qkv, self.out, self.b, self.up, self.down = (nn.LayerNorm(h), nn.Linear(h, 3 * h), nn.Linear(h, h), nn.LayerNorm(h),
                                                                  nn.Linear(h, 4 * h), nn.Linear(4 * h, h))
        self.heads = heads

    def forward(self, x):
        b, t, h = x.shape
        q, k, v = self.qkv(self.a(x)).reshape(b, t, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = ((q @ k.transpose(-1, -2)) * (h // self.heads)**-0.5).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, h))
        return x + self.down(F.gelu(self.up(self.b(x))))


class ViT(nn.Module):
    def __init__(self, h=16, layers=2):
        super().__init__()
        self.patches, self.first, self.places = nn.Conv2d(3, h, 4, 4), nn.Parameter(torch.randn(1, 1, h)), nn.Parameter(torch.randn(1, 5, h) * 0.1)
        self.layers, self.norm, self.head = nn.ModuleList([ViTBlock(h, 2) for _ in range(layers)]), nn.LayerNorm(h), nn.Linear(h, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


class Encoder(nn.Module):
    """torch's own layers, whose attention has samples between tokens and heads."""

    def __init__(self, h=16):
        super().__init__()
        self.embed, self.head = nn.Embedding(30, h), nn.Linear(h, 30)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(h, 4, 32, batch_first=True, dropout=0.0) for _ in range(2)])

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class GPT2Cached(GPT2):
    """As text-generation exports of GPT-2 are: a cache of keys and values in and out, a mask and places beside it."""

    def attend(self, a, x, past, mask):
        q, k, v = (a.split(part) for part in a.c_attn(x).split(a.h, dim=2))
        k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        w = torch.matmul(q, k.transpose(-1, -2)) / (float(v.size(-1)) ** 0.5)
        seen = a.bias[:, :, k.size(-2) - q.size(-2):k.size(-2), :k.size(-2)].bool()
        w = torch.where(seen, w, torch.full([], torch.finfo(torch.float32).min, dtype=w.dtype)) + mask
        y = torch.matmul(F.softmax(w, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return a.c_proj(y.view(y.size()[:-2] + (a.h,))), (k, v)

    def forward(self, input_ids, attention_mask, position_ids, *past):
        mask = attention_mask.view(input_ids.shape[0], -1)[:, None, None, :].to(self.wte.weight.dtype)
        mask = (1.0 - mask) * torch.finfo(torch.float32).min
        x = self.wte(input_ids) + self.wpe(position_ids.view(-1, input_ids.shape[-1]))
        present = []
        for i, block in enumerate(self.h):
            y, both = self.attend(block.attn, block.ln_1(x), past[2 * i:2 * i + 2], mask)
            present += both
            x = x + y
            y = block.c_fc(block.ln_2(x))
            y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
            x = x + block.c_proj(y)
        return (self.lm_head(self.ln_f(x)), *present)


class LlamaCached(Llama):
    """The same of Llama: rotations by the places that it is handed, or by rows of tables (`tables`); a mask that is written into."""

    def __init__(self, tables=False, **options):
        super().__init__(**options)
        a = self.layers[0].self_attn
        both = torch.outer(torch.arange(64).float(), a.inv_freq).repeat(1, 2)
        if tables:
            self.register_buffer("cos_cached", both.cos()[None, None])
            self.register_buffer("sin_cached", both.sin()[None, None])

    def turns(self, a, position_ids, total):
        if hasattr(self, "cos_cached"):
            rows = [table[0, 0, :total][position_ids] for table in (self.cos_cached, self.sin_cached)]
            return [row.unsqueeze(1) for row in rows]
        freqs = a.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        freqs = torch.matmul(freqs, position_ids[:, None, :].float()).transpose(1, 2)
        both = torch.cat((freqs, freqs), dim=-1)
        return both.cos().unsqueeze(1), both.sin().unsqueeze(1)

    def attend(self, a, x, past, mask, position_ids):
        b, t, h = x.size()
        q = a.q_proj(x).view(b, t, a.heads, a.d).transpose(1, 2)
        k, v = (p(x).view(b, t, a.groups, a.d).transpose(1, 2) for p in (a.k_proj, a.v_proj))
        cos, sin = self.turns(a, position_ids, t + past[0].shape[2])
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        total = k.shape[2]
        w = torch.matmul(q, a.repeat(k, b, total).transpose(2, 3)) / math.sqrt(a.d) + mask[:, :, :, :total]
        y = torch.matmul(F.softmax(w, dim=-1), a.repeat(v, b, total)).transpose(1, 2).contiguous()
        return a.o_proj(y.reshape(b, t, h)), (k, v)

    def forward(self, input_ids, attention_mask, position_ids, *past):
        b, t = input_ids.shape
        before, least = past[0].shape[2], torch.finfo(torch.float32).min
        mask = torch.full((t, before + t), least)
        mask = torch.triu(mask, diagonal=1) * (torch.arange(before + t) > torch.arange(before, before + t).reshape(-1, 1))
        mask = mask[None, None, :, :].expand(b, 1, -1, -1).clone()
        hidden = (mask[:, :, :, :attention_mask.shape[-1]] + attention_mask[:, None, None, :]) == 0
        mask[:, :, :, :attention_mask.shape[-1]] = mask[:, :, :, :attention_mask.shape[-1]].masked_fill(hidden, least)
        x, present = self.embed_tokens(input_ids), []
        for i, layer in enumerate(self.layers):
            y, both = self.attend(layer.self_attn, layer.input_layernorm(x), past[2 * i:2 * i + 2], mask, position_ids)
            present += both
            x = x + y
            y = layer.post_attention_layernorm(x)
            x = x + layer.down_proj(F.silu(layer.gate_proj(y)) * layer.up_proj(y))
        return (self.lm_head(self.norm(x)), *present)


def export_cached(module, batch, seq, heads, d, layers, path, opset=14):
    """As optimum exports decoders: two tokens behind a cache of three."""
    past = [torch.randn(batch, heads, 3, d) for _ in range(2 * layers)]
    names = [f"past_key_values.{i // 2}.{'key' if i % 2 == 0 else 'value'}" for i in range(2 * layers)]
    axes = {"input_ids": {0: "batch_size", 1: "sequence_length"}, "position_ids": {0: "batch_size", 1: "sequence_length"},
            "attention_mask": {0: "batch_size", 1: "past_sequence_length + 1"},
            **{name: {0: "batch_size", 2: "past_sequence_length"} for name in names}}
    inputs = (torch.randint(0, 9, (batch, 2)), torch.ones(batch, 5, dtype=torch.long), torch.arange(3, 5).expand(batch, 2), *past)
    module.train(False)
    torch.onnx.export(module, inputs, path, input_names=["input_ids", "attention_mask", "position_ids", *names],
                      output_names=["logits", *[name.replace("past_key_values", "present") for name in names]], opset_version=opset,
                      dynamic_axes=axes, do_constant_folding=True)
    return [torch.zeros(batch, heads, 0, d, dtype=torch.double) for _ in names]


class Padded(nn.Module):
    """Pictures with rows in front and columns behind, channels besides, and bounds, as exports from other frameworks have them."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(12, 8, 3), nn.Linear(8, 5)

    def forward(self, x):
        x = F.hardtanh(self.a(F.pad(x, (0, 1, 2, 0))), -0.4, 0.6)
        x = F.relu6(8 * self.b(F.pad(x, (1, 1, 1, 1, 0, 4), value=0.25)))
        return self.head(F.pad(x, (0, 0, 0, 0)).mean((2, 3)))


class SamePadded(nn.Module):
    """Windows that auto_pad places, as exports from TensorFlow have them; torch has no such attribute, so the file is written here."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Conv2d(3, 4, (3, 2), 2), nn.Conv2d(4, 6, 4), nn.Linear(6, 5)

    def forward(self, x):  # 8x7 -> 4x4 -> 4x4 -> 4x4 -> 2x2
        x = torch.tanh(self.a(F.pad(x, (0, 1, 0, 1))))
        x = F.max_pool2d(F.pad(x, (1, 0, 1, 0), value=-math.inf), 2, 1)
        x = torch.tanh(self.b(F.pad(x, (2, 1, 2, 1))))
        shares = F.avg_pool2d(F.pad(torch.ones_like(x), (0, 1, 0, 1)), 3, 2)
        return self.head((F.avg_pool2d(F.pad(x, (0, 1, 0, 1)), 3, 2) / shares).mean((2, 3)))

    def write(self, path):
        import onnx
        node, real = onnx.helper.make_node, onnx.TensorProto.FLOAT
        nodes = [node("Conv", ["x", "a.weight", "a.bias"], ["a"], "a", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"), node("Tanh", ["a"], ["at"]),
                 node("MaxPool", ["at"], ["m"], kernel_shape=[2, 2], strides=[1, 1], auto_pad="SAME_LOWER"),
                 node("Conv", ["m", "b.weight", "b.bias"], ["b"], "b", kernel_shape=[4, 4], auto_pad="SAME_LOWER"), node("Tanh", ["b"], ["bt"]),
                 node("AveragePool", ["bt"], ["v"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
                 node("GlobalAveragePool", ["v"], ["g"]), node("Flatten", ["g"], ["f"]),
                 node("Gemm", ["f", "head.weight", "head.bias"], ["logits"], "head", transB=1)]
        graph = onnx.helper.make_graph(nodes, "same", [onnx.helper.make_tensor_value_info("x", real, ["batch", 3, 8, 7])],
                                       [onnx.helper.make_tensor_value_info("logits", real, ["batch", 5])],
                                       [onnx.numpy_helper.from_array(p.detach().numpy(), name) for name, p in self.named_parameters()])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)


class Gates(nn.Module):
    """Activations that have an op of their own in files, or are made of others."""

    def __init__(self, h=12):
        super().__init__()
        self.inner, self.outer, self.slopes = nn.Linear(6, h), nn.Linear(h, 5), nn.PReLU(h)

    def forward(self, x):
        x = 3 * self.inner(x)
        x = F.hardswish(x) * F.hardsigmoid(x - 0.5) + F.leaky_relu(x, 0.2) * torch.sigmoid(x) + self.slopes(x) * F.softplus(x)
        return self.outer(F.elu(x, 0.7) + F.mish(x))


class Normed(nn.Module):
    """Norms of groups of channels and of each sample's channel, with scales and without."""

    def __init__(self, c=8):
        super().__init__()
        self.inner, self.groups, self.each = nn.Conv2d(3, c, 3), nn.GroupNorm(2, c), nn.InstanceNorm2d(c, affine=True)
        self.plain, self.middle, self.outer = nn.InstanceNorm2d(c), nn.Conv2d(c, c, 3), nn.Linear(c, 5)

    def forward(self, x):
        x = self.middle(torch.relu(self.each(self.groups(self.inner(x)))))
        return self.outer(torch.relu(self.plain(x)).mean((2, 3)))


class Larger(nn.Module):
    """Pictures that become smaller, and larger again: transposed convolutions, some of them by groups."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)
        self.grouped = nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2, bias=False)
        self.same, self.wide = nn.ConvTranspose2d(4, 4, 3, padding=1), nn.ConvTranspose2d(4, 3, 3, stride=3, dilation=2, output_padding=2)
        self.out = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        x = torch.relu(self.up(torch.relu(self.down(x))))
        return self.out(torch.tanh(self.wide(self.same(torch.tanh(self.grouped(x))))))


class UNet(nn.Module):
    """Down and up again by nearest neighbours, twice and three times as large, beside what was there; attention over all points at the
    bottom."""

    def __init__(self):
        super().__init__()
        self.a, self.d, self.e = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 3, 1)
        self.na, self.nd = nn.GroupNorm(2, 4), nn.GroupNorm(4, 8)
        self.qkv, self.proj = nn.Conv2d(8, 24, 1), nn.Conv2d(8, 8, 1)
        self.u, self.m, self.out = nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        a = F.silu(self.na(self.a(x)))
        b = self.e(F.silu(self.nd(self.d(a))))
        n, c, h, w = b.shape
        q, k, v = self.qkv(b).reshape(n, 3, c, h * w).unbind(1)
        p = torch.softmax(torch.einsum("bci,bcj->bij", q, k) * c**-0.5, -1)
        b = b + self.proj(torch.einsum("bij,bcj->bci", p, v).reshape(n, c, h, w))
        b = F.interpolate(F.interpolate(b, scale_factor=3, mode="nearest"), scale_factor=2, mode="nearest")
        return self.out(F.silu(self.m(torch.cat([a, self.u(b)], 1))))


class Windowed(nn.Module):
    """Attention inside windows of a picture, as Swin has it: of the second layer they are shifted, which a mask undoes at the edges;
    biases by relative positions, rows of a table by a list (without `biased` attention is plain)."""

    def __init__(self, h=8, heads=2, window=2, side=4, biased=True):
        super().__init__()
        self.heads, self.window, self.side, self.biased = heads, window, side, biased
        self.embed, self.head = nn.Conv2d(3, h, 2, 2), nn.Linear(h, 5)
        self.norms, self.qkv = nn.ModuleList([nn.LayerNorm(h) for _ in range(2)]), nn.ModuleList([nn.Linear(h, 3 * h) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(h, h) for _ in range(2)])
        if not biased:
            return
        self.tables = nn.ParameterList([nn.Parameter(torch.randn((2 * window - 1)**2, heads)) for _ in range(2)])
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])
        regions = torch.zeros(1, side, side, 1)
        for i, rows in enumerate((slice(0, -window), slice(-window, -window // 2), slice(-window // 2, None))):
            for k, columns in enumerate((slice(0, -window), slice(-window, -window // 2), slice(-window // 2, None))):
                regions[:, rows, columns] = 3 * i + k
        regions = self.cut(regions).view(-1, window * window)
        self.register_buffer("mask", (regions[:, None, :] != regions[:, :, None]) * -100.0)

    def numbers(self, seq):
        return {"list.0": self.index, "table.1": self.mask} if self.biased else {}

    def cut(self, x):
        b, n, w = x.shape[0], self.side // self.window, self.window
        return x.view(b, n, w, n, w, x.shape[-1]).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, w * w, x.shape[-1])

    def attend(self, x, i):
        w, n = self.window, self.side // self.window
        b, _, h = x.shape
        shift = w // 2 if self.biased and i == 1 else 0
        y = self.norms[i](x).view(b, self.side, self.side, h)
        y = self.cut(torch.roll(y, (-shift, -shift), (1, 2)) if shift else y)
        q, k, v = self.qkv[i](y).reshape(y.shape[0], w * w, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q * (h // self.heads)**-0.5) @ k.transpose(-2, -1)
        if self.biased:
            a = a + self.tables[i][self.index.view(-1)].view(w * w, w * w, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        if shift:
            a = a.view(b, n * n, self.heads, w * w, w * w) + self.mask.unsqueeze(1).unsqueeze(0)
            a = a.view(-1, self.heads, w * w, w * w)
        y = self.out[i]((a.softmax(-1) @ v).transpose(1, 2).reshape(-1, w * w, h))
        y = y.view(b, n, n, w, w, h).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, self.side, self.side, h)
        y = torch.roll(y, (shift, shift), (1, 2)) if shift else y
        return x + y.view(b, self.side * self.side, h)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        return self.head(self.attend(self.attend(x, 0), 1).mean(1))


class Relative(nn.Module):
    """T5's attention: biases by the bucket that a distance is in, which layers share."""

    def __init__(self, h=16, heads=4, buckets=8, most=16):
        super().__init__()
        self.embed, self.biases, self.head = nn.Embedding(30, h), nn.Embedding(buckets, heads), nn.Linear(h, 30, bias=False)
        self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(h, h, bias=False) for _ in range(4)]) for _ in range(2)])
        self.heads, self.d, self.buckets, self.most = heads, h // heads, buckets, most

    def bucket(self, apart):
        n = self.buckets // 2
        side, apart, exact = (apart > 0).to(torch.long) * n, apart.abs(), n // 2
        large = exact + (torch.log(apart.float() / exact) / math.log(self.most / exact) * (n - exact)).to(torch.long)
        return side + torch.where(apart < exact, apart, torch.min(large, torch.full_like(large, n - 1)))

    def numbers(self, seq):
        places = torch.arange(seq)
        return {"list.0": self.bucket(places[None, :] - places[:, None])}

    def forward(self, input_ids):
        x = self.embed(input_ids)
        b, t, h = x.shape
        places = torch.arange(t)
        biases = self.biases(self.bucket(places[None, :] - places[:, None])).permute(2, 0, 1).unsqueeze(0)
        for q, k, v, o in self.layers:
            q, k, v = (p(x).view(b, t, self.heads, self.d).transpose(1, 2) for p in (q, k, v))
            p = F.softmax(torch.matmul(q, k.transpose(3, 2)) + biases, dim=-1)
            x = x + o(torch.matmul(p, v).transpose(1, 2).contiguous().view(b, -1, h))
        return self.head(x)


def export(module, inputs, path, opset=13, dynamic=True, train=False, folds=True):
    """`inputs`: name -> tensor."""
    mode = torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL
    axes = {name: ({0: "batch", 1: "sequence"} if value.dim() == 2 and not value.is_floating_point() else {0: "batch"})
            for name, value in inputs.items()}
    module.train(train)
    torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=["logits"], opset_version=opset,
                      dynamic_axes={**axes, "logits": {0: "batch"}} if dynamic else None, training=mode, do_constant_folding=folds and not train)
