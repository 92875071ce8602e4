"""A program of Paceline's program language as a job for torchrun, by `paceline program torch`.

    torchrun --nproc-per-node N JOB.py [--iterations 3] [--dtype fp64]

Rank i is device i of the program's mesh. Parameters and data are those of Paceline's executor (a hash of seed, path and
place), so losses are its losses. The first part of this file is the same for every program; the program follows.
"""
import argparse
import math
import os

import numpy
import torch
import torch.distributed as dist

# ---- random numbers: core/base/hash_index.h, workloads/execute/data.c ----


def hash_word(hashed, word):
    with numpy.errstate(over="ignore"):
        hashed = (numpy.uint64(hashed) ^ numpy.asarray(word).astype(numpy.uint64)) * numpy.uint64(0xd6e8feb86659fd93)
    return hashed ^ (hashed >> numpy.uint64(32))


def hash_text(hashed, text):
    for byte in text.encode():
        hashed = hash_word(hashed, byte)
    return hashed


def uniform(hashed):
    """In [-1, 1)."""
    return (hashed >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-52 - 1


def zigzag(at, n, ranks):
    """Tokens in the order in which context ranks hold them: chunks from both ends."""
    if ranks <= 1 or n % (2 * ranks) != 0:
        return at
    chunk = n // (2 * ranks)
    which = at // chunk
    start = numpy.where(which % 2 == 0, which // 2, 2 * ranks - 1 - which // 2)
    return start * chunk + at % chunk


# ---- values with named dimensions ----


class Type:
    """fp32[b=8/dp, h=16] partial(tp), as a device sees it."""

    def __init__(self, job, element, dims, on=()):
        self.element, self.names = element, [dim[0] for dim in dims]
        self.whole, self.local, self.origin = [], [], []
        self.on = dict(on)  # axis: "partial", "maximum"
        for name, extent, axes in dims:
            part, parts = 0, 1
            for axis in axes:
                part, parts = part * job.mesh[axis] + job.at[axis], parts * job.mesh[axis]
                self.on[axis] = name
            self.whole.append(extent)
            self.local.append(extent // parts)
            self.origin.append(part * (extent // parts))

    def places(self):
        """Of each element in the whole value, per dimension."""
        grids = numpy.meshgrid(*[o + numpy.arange(n) for o, n in zip(self.origin, self.local)], indexing="ij")
        return grids if self.names else []


class Value:
    def __init__(self, data, kind):
        self.data, self.type = data, kind

    def ordered(self, names):
        """Its data in the order of `names`, of extent 1 where it lacks one."""
        data = self.data.permute([self.type.names.index(n) for n in names if n in self.type.names])
        for i, name in enumerate(names):
            if name not in self.type.names:
                data = data.unsqueeze(i)
        return data


def listed(names):
    return [names] if isinstance(names, str) else list(names)


class Job:
    """The ops of the language, on this rank."""

    def __init__(self, mesh, classes, microbatches, own, fewer=(), sample_axes=()):
        self.mesh, self.microbatches, self.classes = mesh, microbatches, classes
        self.fewer, self.sample_axes = fewer, sample_axes  # of places on the mesh; axes that cut samples
        self.rank, self.dtype, self.seed = dist.get_rank(), torch.float64 if own.dtype == "fp64" else torch.float32, own.seed
        count = math.prod(mesh.values())
        if dist.get_world_size() != count:
            raise SystemExit(f"the program is for {count} ranks, and torchrun started {dist.get_world_size()}")
        self.at = self.coordinates(self.rank)
        self.crews = {name: [r for r in range(count) if all(self.coordinates(r)[a] == c for a, c in at.items())]
                      for name, at in classes.items()}
        self.name = next(name for name, crew in self.crews.items() if self.rank in crew)
        self.groups, self.store, self.gradients, self.states, self.kept_values = {}, {}, {}, {}, {}
        self.sent, self.own_mail, self.tags, self.losses = [], {}, {}, 0.0
        self.iteration = self.microbatch = self.chunk = 0

    def coordinates(self, rank):
        at = {}
        for axis in reversed(self.mesh):
            at[axis], rank = rank % self.mesh[axis], rank // self.mesh[axis]
        return {axis: at[axis] for axis in self.mesh}

    def type(self, element, dims, on=()):
        return Type(self, element, dims, on)

    # -- groups: every rank makes all of them, in one order, as torch.distributed wants it --

    def make_groups(self, overs, sums):
        count = math.prod(self.mesh.values())
        for over in overs:
            for rank in range(count):
                at = self.coordinates(rank)
                self.group_of([r for r in range(count)
                               if all(self.coordinates(r)[a] == at[a] for a in self.mesh if a not in over)])
        for names in sums:
            for members in zip(*[self.crews[name] for name in names]):
                self.group_of(sorted(members))

    def group_of(self, ranks):
        if tuple(ranks) not in self.groups:
            self.groups[tuple(ranks)] = dist.new_group(list(ranks)) if len(ranks) > 1 else None
        return self.groups[tuple(ranks)]

    # -- microbatches --

    def microbatches_at(self, at):
        return next((n for place, n in self.fewer if all(at[a] == c for a, c in place.items())), self.microbatches)

    def samples_before(self, samples):
        """In front of this microbatch, of `samples` a whole one: those that are run; this rank's own begin where they would."""
        if not self.fewer:
            return self.microbatch * samples
        parts, missing, before = math.prod(self.mesh[a] for a in self.sample_axes), 0, True
        for part in range(parts):
            at, rest = dict(self.at), part
            for axis in reversed(self.sample_axes):
                at[axis], rest = rest % self.mesh[axis], rest // self.mesh[axis]
            n, before = self.microbatches_at(at), before and at != self.at
            missing += max(self.microbatch - n, 0) + (before and n <= self.microbatch)
        return self.microbatch * samples - missing * (samples // parts)

    def members(self, over):
        count = math.prod(self.mesh.values())
        return [r for r in range(count)
                if all(self.coordinates(r)[a] == self.at[a] for a in self.mesh if a not in listed(over))]

    # -- state --

    def path(self, prefix, path):
        return f"{prefix}.{path}" if prefix and path else prefix or path

    def input(self, prefix, path, types, below=0, zigzag=1):
        kind = types[0]
        places = kind.places()
        ranks = zigzag
        for i, name in enumerate(kind.names):
            if name == "b":
                places[i] = places[i] + self.samples_before(kind.whole[i])
            if name == "s":
                places[i] = globals()["zigzag"](places[i], kind.whole[i], ranks)
        hashed = hash_word(hash_text(hash_word(self.seed, 3), path), self.iteration)
        if path == "positions" and "s" in kind.names:
            return Value(torch.from_numpy(places[kind.names.index("s")].astype(numpy.float64)).to(self.dtype), kind)
        for place in places:
            hashed = hash_word(hashed, place)
        hashed = hash_word(hashed, 4)
        data = hashed % numpy.uint64(below) if below > 0 else numpy.zeros(kind.local) if kind.element == "i32" else uniform(hashed)
        return Value(torch.from_numpy(numpy.asarray(data).astype(numpy.float64).reshape(kind.local)).to(self.dtype), kind)

    def param(self, prefix, path, types):
        kind, path = types[0], self.path(prefix, path)
        if path not in self.store:
            hashed = hash_text(hash_word(self.seed, 1), path)
            for place in kind.places():
                hashed = hash_word(hashed, place)
            many = len(kind.names) > 1
            width, centre = (math.sqrt(3 / max(kind.whole)), 0) if many else (0.25, 1)
            data = numpy.asarray(centre + width * uniform(hash_word(hashed, 2)))
            self.store[path] = Value(torch.from_numpy(data.reshape(kind.local)).to(self.dtype), kind)
        return self.store[path]

    def keep(self, prefix, path, x):
        self.kept_values[self.chunk, self.microbatch, self.path(prefix, path)] = x

    def kept(self, prefix, path, types):
        return self.kept_values[self.chunk, self.microbatch, self.path(prefix, path)]

    def accumulate(self, prefix, path, x):
        path = self.path(prefix, path)
        if path in self.gradients:
            x = Value(self.gradients[path].data + x.data, x.type)
        self.gradients[path] = x

    def gradient(self, prefix, path, types):
        return self.gradients.get(self.path(prefix, path)) or self.zeros(types[0])

    def state(self, prefix, path, types, slot=""):
        return self.states.get((self.path(prefix, path), slot)) or self.zeros(types[0])

    def zeros(self, kind):
        return Value(torch.zeros(kind.local, dtype=self.dtype), kind)

    def store_value(self, prefix, path, x, slot=None):
        if slot is None:
            self.store[self.path(prefix, path)] = x
        else:
            self.states[self.path(prefix, path), slot] = x

    def loss(self, x):
        first = self.coordinates(self.crews[self.name][0])
        if all(a in x.type.on or self.at[a] == first[a] for a in self.mesh):
            self.losses += float(x.data)

    # -- computing --

    def product(self, a, b, types, over=(), order=()):
        letters = {name: chr(97 + i) for i, name in enumerate(dict.fromkeys(a.type.names + b.type.names))}
        text = ["".join(letters[n] for n in names) for names in (a.type.names, b.type.names, types[0].names)]
        return Value(torch.einsum(f"{text[0]},{text[1]}->{text[2]}", a.data, b.data), types[0])

    def both(self, a, b, types, f):
        return Value(f(a.data, b.ordered(a.type.names)).expand(types[0].local), types[0])

    def add(self, a, b, types):
        return self.both(a, b, types, torch.add)

    def subtract(self, a, b, types):
        return self.both(a, b, types, torch.sub)

    def multiply(self, a, b, types):
        return self.both(a, b, types, torch.mul)

    def divide(self, a, b, types):
        return self.both(a, b, types, torch.div)

    def scale(self, a, types, by):
        return Value(a.data * by, types[0])

    def copy(self, a, types, launches=0, heads=0, times=1):
        return Value(a.data.clone(), types[0])

    def sum(self, a, types, over):
        dims = [a.type.names.index(n) for n in listed(over)]
        return Value(a.data.sum(dims) if dims else a.data, types[0])

    def maximum(self, a, types, over):
        return Value(a.data.amax([a.type.names.index(n) for n in listed(over)]), types[0])

    def spread(self, a, types):
        return Value(a.ordered(types[0].names).expand(types[0].local).contiguous(), types[0])

    def rename(self, a, types, **names):
        return Value(a.data, types[0])

    def cast(self, a, types):
        return Value(a.data, types[0])

    def constant(self, types, value):
        return Value(torch.full(types[0].local, value, dtype=self.dtype), types[0])

    def part(self, a, types, over, first):
        i = a.type.names.index(over)
        return Value(a.data.narrow(i, first, types[0].local[i]).contiguous(), types[0])

    def pad(self, a, types, over, first):
        i = a.type.names.index(over)
        made = torch.zeros(types[0].local, dtype=self.dtype)
        made.narrow(i, first, a.type.local[i]).copy_(a.data)
        return Value(made, types[0])

    def map(self, a, types, f):
        return Value(f(a.data), types[0])

    def tanh(self, a, types):
        return self.map(a, types, torch.tanh)

    def exp(self, a, types):
        return self.map(a, types, torch.exp)

    def log(self, a, types):
        return self.map(a, types, torch.log)

    def relu(self, a, types):
        return self.map(a, types, torch.relu)

    def silu(self, a, types):
        return self.map(a, types, torch.nn.functional.silu)

    def sigmoid(self, a, types):
        return self.map(a, types, torch.sigmoid)

    def hard_sigmoid(self, a, types):
        return self.map(a, types, torch.nn.functional.hardsigmoid)

    def hard_swish(self, a, types):
        return self.map(a, types, torch.nn.functional.hardswish)

    def reciprocal(self, a, types):
        return self.map(a, types, torch.reciprocal)

    @staticmethod
    def gelu_inner(a):
        return math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)

    def gelu(self, a, types):
        return self.map(a, types, lambda x: 0.5 * x * (1 + torch.tanh(self.gelu_inner(x))))

    def gelu_backward(self, a, dy, types):
        t = torch.tanh(self.gelu_inner(a.data))
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * a.data**2)
        return Value(dy.ordered(a.type.names) * (0.5 * (1 + t) + 0.5 * a.data * (1 - t * t) * slope), types[0])

    def silu_backward(self, a, dy, types):
        gate = torch.sigmoid(a.data)
        return Value(dy.ordered(a.type.names) * gate * (1 + a.data * (1 - gate)), types[0])

    def relu_backward(self, y, dy, types):
        return Value(dy.ordered(y.type.names) * (y.data > 0), types[0])

    def tanh_backward(self, y, dy, types):
        return Value(dy.ordered(y.type.names) * (1 - y.data * y.data), types[0])

    def sigmoid_backward(self, y, dy, types):
        return Value(dy.ordered(y.type.names) * y.data * (1 - y.data), types[0])

    def hard_sigmoid_backward(self, a, dy, types):
        return Value(dy.ordered(a.type.names) / 6 * ((a.data > -3) & (a.data < 3)), types[0])

    def hard_swish_backward(self, a, dy, types):
        slope = torch.where(a.data >= 3, 1.0, a.data / 3 + 0.5) * (a.data > -3)
        return Value(dy.ordered(a.type.names) * slope, types[0])

    def dropout_factors(self, place, n, samples, p, seed):
        before = self.samples_before(samples) * (n // samples)
        hashed = hash_word(hash_word(hash_word(0, seed), self.iteration), place + before)
        draw = (hash_word(hashed, 0) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
        return torch.from_numpy(numpy.where(draw < p, 0, 1 / (1 - p))).to(self.dtype)

    def dropout(self, a, types, p, seed, zigzag=1):
        place = numpy.zeros(a.type.local, dtype=numpy.int64)
        for name, at, whole in zip(a.type.names, a.type.places(), a.type.whole):
            place = place * whole + (globals()["zigzag"](at, whole, zigzag) if name == "s" else at)
        return Value(a.data * self.dropout_factors(place, math.prod(a.type.whole), (a.type.whole or [1])[0], p, seed), types[0])

    def softmax(self, a, types, over):
        return Value(torch.softmax(a.data, a.type.names.index(over)), types[0])

    def softmax_backward(self, y, dy, types, over):
        dy = dy.ordered(y.type.names)
        return Value(y.data * (dy - (y.data * dy).sum(y.type.names.index(over), keepdim=True)), types[0])

    def chosen(self, p, over, k):
        """1 for the k largest of each row, of equal ones the first; and the dimension."""
        at = p.type.names.index(over)
        order = torch.sort(p.data, stable=True, dim=at, descending=True)[1]
        return torch.zeros_like(p.data).scatter_(at, order.narrow(at, 0, k), 1.0), at

    def top_k(self, p, types, over, k=1, normalise=0, sparse=0):  # sparse: what kernels have, and no value
        mask, at = self.chosen(p, over, k)
        kept = p.data * mask
        return Value((kept / kept.sum(at, keepdim=True) if normalise else kept).clone(), types[0])

    def top_k_backward(self, p, w, dw, types, over, k=1, normalise=0, sparse=0):
        mask, at = self.chosen(p, over, k)
        w, dw = w.ordered(p.type.names), dw.ordered(p.type.names)
        if normalise:
            dw = (dw - (w * dw).sum(at, keepdim=True)) / (p.data * mask).sum(at, keepdim=True)
        return Value(dw * mask, types[0])

    def norm_parts(self, x, over, epsilon, centred):
        dims = [x.type.names.index(n) for n in listed(over)]
        rest = x.data - x.data.mean(dims, keepdim=True) if centred else x.data
        return dims, rest * torch.rsqrt((rest * rest).mean(dims, keepdim=True) + epsilon), \
            torch.rsqrt((rest * rest).mean(dims, keepdim=True) + epsilon)

    def layer_norm(self, x, scale, shift, types, over, epsilon):
        names = x.type.names
        return Value(self.norm_parts(x, over, epsilon, True)[1] * scale.ordered(names) + shift.ordered(names), types[0])

    def rms_norm(self, x, scale, types, over, epsilon):
        return Value(self.norm_parts(x, over, epsilon, False)[1] * scale.ordered(x.type.names), types[0])

    def norm_backward(self, x, scale, dy, types, over, epsilon, centred):
        dims, n, inverse = self.norm_parts(x, over, epsilon, centred)
        dy = dy.ordered(x.type.names)
        g = dy * scale.ordered(x.type.names)
        mean = g.mean(dims, keepdim=True) if centred else 0
        dx = Value(inverse * (g - mean - n * (g * n).mean(dims, keepdim=True)), types[0])
        gone = [i for i, name in enumerate(x.type.names) if name not in scale.type.names]
        left = [name for name in x.type.names if name in scale.type.names]
        back = [left.index(name) for name in scale.type.names]
        made = [Value((d.sum(gone) if gone else d).permute(back), t) for d, t in zip((dy * n, dy), types[1:])]
        return (dx, *made)

    def layer_norm_backward(self, x, scale, dy, types, over, epsilon):
        return self.norm_backward(x, scale, dy, types, over, epsilon, True)

    def rms_norm_backward(self, x, scale, dy, types, over, epsilon):
        return self.norm_backward(x, scale, dy, types, over, epsilon, False)

    def rotary(self, x, positions, types, over, base=10000.0, share=1.0, inverse=0):
        at = x.type.names.index(over)
        n = round(share * x.type.whole[at])
        frequency = (-1 if inverse else 1) * base ** (-2 * torch.arange(n // 2, dtype=torch.float64) / n)
        shape = [1] * len(x.type.names)
        shape[at] = n // 2
        angle = positions.ordered(x.type.names).double() * frequency.reshape(shape)
        c, s = torch.cos(angle).to(self.dtype), torch.sin(angle).to(self.dtype)
        a, b, rest = x.data.narrow(at, 0, n // 2), x.data.narrow(at, n // 2, n // 2), x.data.narrow(at, n, x.type.local[at] - n)
        return Value(torch.cat([a * c - b * s, b * c + a * s, rest], at), types[0])

    # -- attention: its dimensions are told by who has them (workloads/language/README.md) --

    def alibi_slopes(self, q, heads, rows):
        # Press et al. 2022: powers of 2^(-8/n), or of the next smaller power of two and every second of the next larger one
        grids, head, n = dict(zip(q.type.names, q.type.places())), 0, 1
        for name in heads:
            whole = q.type.whole[q.type.names.index(name)]
            head, n = head * whole + grids[name], n * whole
        lower = 1 << (n.bit_length() - 1)
        power = numpy.where(head < lower, -8.0 * (head + 1) / lower, -4.0 * (2 * (head - lower) + 1) / lower)
        others = tuple(i for i, name in enumerate(q.type.names) if name not in rows)
        left = [name for name in q.type.names if name in rows]
        slopes = (2.0**power)[tuple(0 if i in others else slice(None) for i in range(len(q.type.names)))]
        return torch.from_numpy(numpy.ascontiguousarray(slopes.transpose([left.index(name) for name in rows])))

    def mask(self, a, queries, keys, types, causal=0, window=0, otherwise=-1e9, alibi=None, slope=1.0):
        names = a.type.names
        away = queries.ordered(names) - keys.ordered(names)
        seen = torch.ones_like(away, dtype=torch.bool)
        if causal:
            seen &= away >= 0
        if window:
            seen &= away.abs() < window
        data = a.data
        if alibi is not None:
            heads = [alibi] if isinstance(alibi, str) else alibi
            data = data - slope * self.alibi_slopes(a, heads, names) * away.abs()
        return Value(torch.where(seen, data, torch.full((), otherwise, dtype=data.dtype)), types[0])

    def attention_parts(self, q, k, v, positions, scale, causal, window, p, seed, alibi=None, slope=1.0):
        names = [set(x.type.names) for x in (q, k, v)]
        t = next(n for n in k.type.names if n in names[2] and n not in names[0])
        d = next(n for n in k.type.names if n in names[0] and n not in names[2])
        e = next(n for n in v.type.names if n not in names[0] and n not in names[1])
        batch = [n for n in q.type.names if n in names[1] and n in names[2]]
        rows = [n for n in q.type.names if n not in names[1] and n not in names[2]]
        dense = [batch + rows + [d], batch + [t, d], batch + [t, e]]
        letters = {n: chr(97 + i) for i, n in enumerate(batch + rows + [t, d, e])}
        text = ["".join(letters[n] for n in some) for some in dense]
        score = "".join(letters[n] for n in batch + rows + [t])
        s = torch.einsum(f"{text[0]},{text[1]}->{score}", q.ordered(dense[0]), k.ordered(dense[1]))
        s = s * (scale if scale is not None else 1 / math.sqrt(q.type.whole[q.type.names.index(d)]))
        factor = 1
        if positions:
            of = positions[0].type.names[0]
            axis = (batch + rows).index(of)
            away = positions[0].data[:, None] - positions[1].data[None, :]
            seen = torch.ones_like(away, dtype=torch.bool)
            if causal:
                seen &= away >= 0
            if window:
                seen &= away.abs() < window
            shape = [1] * len(batch + rows) + [away.shape[1]]
            shape[axis] = away.shape[0]
            if alibi is not None:
                heads = [alibi] if isinstance(alibi, str) else alibi
                s = s - slope * self.alibi_slopes(q, heads, batch + rows)[..., None] * away.abs().reshape(shape)
            s = s.masked_fill(~seen.reshape(shape), -math.inf)
        if p > 0:
            place, grids = 0, dict(zip(q.type.names, q.type.places()))
            for i, name in enumerate(q.type.names):
                if name == d:
                    continue
                at = grids[name].astype(numpy.int64)
                if positions and name == positions[0].type.names[0]:
                    shape = [1] * len(q.type.names)
                    shape[i] = -1
                    at = positions[0].data.numpy().astype(numpy.int64).reshape(shape) + 0 * at
                place = place * q.type.whole[i] + at
            place = numpy.take(place, 0, q.type.names.index(d))
            left = [n for n in q.type.names if n != d]
            place = place.transpose([left.index(n) for n in batch + rows])
            t_at = k.type.names.index(t)
            key = positions[1].data.numpy().astype(numpy.int64) if positions else k.type.origin[t_at] + numpy.arange(k.type.local[t_at])
            place = place[..., None] * k.type.whole[t_at] + key
            n_pairs = math.prod(q.type.whole) // q.type.whole[q.type.names.index(d)] * k.type.whole[t_at]
            factor = self.dropout_factors(place, n_pairs, q.type.whole[0], p, seed)
        return s, factor, batch + rows, dense, text, score, (t, d, e)

    @staticmethod
    def back(data, names, kind):
        return Value(data.permute([names.index(n) for n in kind.names]).contiguous(), kind)

    def attention(self, q, k, v, *positions, types, scale=None, causal=0, window=0, p=0.0, seed=0, **alibi):
        s, factor, rows, dense, text, score, (_, _, e) = self.attention_parts(q, k, v, positions, scale, causal, window, p, seed, **alibi)
        lse = torch.logsumexp(s, -1)
        weight = torch.exp(s - lse[..., None]) * factor
        y = torch.einsum(f"{score},{text[2]}->{score[:-1]}{text[2][-1]}", weight, v.ordered(dense[2]))
        return self.back(y, rows + [e], types[0]), self.back(lse, rows, types[1])

    def attention_backward(self, q, k, v, *rest, types, scale=None, causal=0, window=0, p=0.0, seed=0, **alibi):
        positions = rest[:2] if len(rest) >= 5 else ()
        y, lse, dy, *more = rest[len(positions):]
        s, factor, rows, dense, text, score, (t, d, e) = self.attention_parts(q, k, v, positions, scale, causal, window, p, seed, **alibi)
        weight = torch.exp(s - lse.ordered(rows)[..., None])
        dy, y = dy.ordered(rows + [e]), y.ordered(rows + [e])
        delta = (dy * y).sum(-1) - (more[0].ordered(rows) if more else 0)
        value = score[:-1] + text[2][-1]
        dp = torch.einsum(f"{value},{text[2]}->{score}", dy, v.ordered(dense[2])) * factor
        by = scale if scale is not None else 1 / math.sqrt(q.type.whole[q.type.names.index(d)])
        ds = by * weight * (dp - delta[..., None])
        dq = torch.einsum(f"{score},{text[1]}->{text[0]}", ds, k.ordered(dense[1]))
        dk = torch.einsum(f"{score},{text[0]}->{text[1]}", ds, q.ordered(dense[0]))
        dv = torch.einsum(f"{score},{value}->{text[2]}", weight * factor, dy)
        return self.back(dq, dense[0], types[0]), self.back(dk, dense[1], types[1]), self.back(dv, dense[2], types[2])

    # -- ids: those of other parts give zero --

    def here(self, ids, kind, over):
        at = kind.names.index(over)
        ids = ids.data.long() - kind.origin[at]
        inside = (ids >= 0) & (ids < kind.local[at])
        return ids.clamp(0, kind.local[at] - 1), inside

    def embedding(self, ids, table, types, over):
        index, inside = self.here(ids, table.type, over)
        rows = [n for n in table.type.names if n != over]
        found = table.ordered([over] + rows)[index] * inside.reshape(inside.shape + (1,) * len(rows))
        return self.back(found, ids.type.names + rows, types[0])

    def embedding_backward(self, ids, dy, types, over):
        index, inside = self.here(ids, types[0], over)
        rows = [n for n in types[0].names if n != over]
        at = [types[0].local[types[0].names.index(n)] for n in [over] + rows]
        values = (dy.ordered(ids.type.names + rows) * inside.reshape(inside.shape + (1,) * len(rows))).reshape([-1] + at[1:])
        return self.back(torch.zeros(at, dtype=self.dtype).index_add_(0, index.reshape(-1), values), [over] + rows, types[0])

    def pick(self, a, ids, types, over):
        index, inside = self.here(ids, a.type, over)
        names = [n for n in a.type.names if n != over]
        index, inside = (Value(x, ids.type).ordered(names) for x in (index, inside))
        data = a.ordered(names + [over])
        index = index.expand(data.shape[:-1])
        return self.back(torch.gather(data, -1, index[..., None])[..., 0] * inside, names, types[0])

    def place(self, da, ids, types, over):
        index, inside = self.here(ids, types[0], over)
        names = [n for n in types[0].names if n != over]
        index, inside = (Value(x, ids.type).ordered(names) for x in (index, inside))
        local = [types[0].local[types[0].names.index(n)] for n in names + [over]]
        values = da.ordered(names) * inside
        made = torch.zeros(local, dtype=self.dtype).scatter_(-1, index.expand(local[:-1])[..., None], values.expand(local[:-1])[..., None])
        return self.back(made, names + [over], types[0])

    # -- moves --

    def all_reduce(self, x, types, over):
        maximum = any(x.type.on.get(a) == "maximum" for a in listed(over))
        summed = [a for a in listed(over) if x.type.on.get(a) in ("partial", "maximum")]
        data = x.data.clone().contiguous()
        group = self.group_of(self.members(summed))
        if group is not None:
            dist.all_reduce(data, dist.ReduceOp.MAX if maximum else dist.ReduceOp.SUM, group)
        return Value(data, types[0])

    def all_gather(self, x, types, over, dim):
        group, members = self.group_of(self.members(over)), self.members(over)
        parts = [torch.empty_like(x.data.contiguous()) for _ in members]
        if group is None:
            return Value(x.data, types[0])
        dist.all_gather(parts, x.data.contiguous(), group)
        return Value(torch.cat(parts, x.type.names.index(dim)), types[0])

    def reduce_scatter(self, x, types, over, dim):
        """gloo has none: a sum for everybody, and this rank's part of it."""
        whole = Value(x.data.clone().contiguous(), x.type)
        group, members = self.group_of(self.members(over)), self.members(over)
        if group is not None:
            dist.all_reduce(whole.data, group=group)
        at = x.type.names.index(dim)
        return Value(whole.data.chunk(len(members), at)[members.index(self.rank)].contiguous(), types[0])

    def all_to_all(self, x, types, over, **way):
        """As messages, which every backend has."""
        members, to, start = self.members(over), x.type.names.index(way["to"]), x.type.names.index(way["from_"])
        parts = [part.contiguous() for part in x.data.chunk(len(members), to)]
        got = [torch.empty_like(parts[0]) for _ in members]
        waits = []
        for part, rank, into in zip(parts, members, got):
            if rank == self.rank:
                into.copy_(part)
            else:
                waits += [dist.isend(part, rank, tag=0), dist.irecv(into, rank, tag=0)]
        for wait in waits:
            wait.wait()
        return Value(torch.cat(got, start), types[0])

    def cut(self, x, types, over, dim):
        i = x.type.names.index(dim)
        return Value(x.data.narrow(i, types[0].origin[i] - x.type.origin[i], types[0].local[i]).contiguous(), types[0])

    def counterpart(self, name):
        return self.crews[name][self.crews[self.name].index(self.rank)]

    def channel(self, tag):
        return 1 + self.tags.setdefault(tag, len(self.tags)) * self.microbatches + self.microbatch

    def send(self, x, to, tag):
        rank, data = self.counterpart(to), x.data.clone().contiguous()
        if rank == self.rank:
            self.own_mail[tag, self.microbatch] = data
        else:
            self.sent.append((dist.isend(data, rank, tag=self.channel(tag)), data))

    def receive(self, types, tag, **way):
        rank = self.counterpart(way["from_"])
        if rank == self.rank:
            return Value(self.own_mail.pop((tag, self.microbatch)), types[0])
        data = torch.empty(types[0].local, dtype=self.dtype)
        dist.recv(data, rank, tag=self.channel(tag))
        return Value(data, types[0])

    def sum_classes(self, x, types, classes, tag):
        data = x.data.clone().contiguous()
        group = self.group_of(sorted(self.counterpart(name) for name in listed(classes)))
        if group is not None:
            dist.all_reduce(data, group=group)
        return Value(data, types[0])

    # -- optimizers --

    def adam(self, w, g, m, v, types, rate, beta1, beta2, epsilon, step=1):
        t, names = step + self.iteration, w.type.names
        g, m, v = g.ordered(names), m.ordered(names), v.ordered(names)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        new = w.data - rate * (m / (1 - beta1**t)) / (torch.sqrt(v / (1 - beta2**t)) + epsilon)
        return Value(new, types[0]), self.back(m, names, types[1]), self.back(v, names, types[2])

    def sgd(self, w, g, types, rate):
        return Value(w.data - rate * g.ordered(w.type.names), types[0])

    # -- lists --

    def run(self, lists, iterations):
        for self.iteration in range(iterations):
            self.gradients, self.losses = {}, 0.0
            chunks, steps, update = lists[self.name]
            for kind, chunk, self.microbatch in steps:
                if self.microbatch >= self.microbatches_at(self.at):
                    continue
                self.chunk = chunk
                function = chunks[chunk][kind]
                function(self, "")
                if kind == "W" or (kind == "B" and chunks[chunk]["W"] is None):
                    gone = [key for key in self.kept_values if key[:2] == (chunk, self.microbatch)]
                    for key in gone:
                        del self.kept_values[key]
            if update is not None:
                update(self, "")
            for wait, _ in self.sent:
                wait.wait()
            self.sent = []
            loss = torch.tensor([self.losses], dtype=torch.float64)
            dist.all_reduce(loss)
            if self.rank == 0:
                print(f"iteration {self.iteration} loss {float(loss):.17g}", flush=True)


def main(mesh, classes, microbatches, groups, sums, tags, lists, fewer=(), sample_axes=()):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--dtype", choices=["fp32", "fp64"], default="fp32")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--meet", metavar="FILE", help="ranks meet by this file instead of torchrun's port")
    own = parser.parse_args()
    torch.set_num_threads(1)
    if own.meet is None and "MASTER_ADDR" not in os.environ:
        raise SystemExit("start it with torchrun, or with RANK, WORLD_SIZE and --meet FILE")
    dist.init_process_group(own.backend, init_method=f"file://{os.path.abspath(own.meet)}" if own.meet else None,
                            rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    with torch.no_grad():
        job = Job(mesh, classes, microbatches, own, fewer, sample_axes)
        job.tags = {tag: i for i, tag in enumerate(tags)}
        job.make_groups(groups, sums)
        job.run(lists(job), own.iterations)
    dist.destroy_process_group()


# ---- the program ----
