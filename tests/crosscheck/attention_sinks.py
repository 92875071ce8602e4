#!/usr/bin/python3
"""Attention sinks (gpt-oss) by their definition: a softmax over a query's scores and one number of its head, of which the column of
the sink is left out. The layer's program takes another way, y / (1 + exp(sink - log-sum-exp of the scores)): the script that `paceline
program torch` writes of it runs here, and each of its layers' contexts is compared, with and without a window."""
import importlib.util
import os
import subprocess
import sys
import tempfile

PACELINE = os.environ["PACELINE"]
MODEL = os.path.join(os.environ.get("SOURCE_DIR", "."), "tests", "unit", "models", "tiny-gpt-oss.json")

if importlib.util.find_spec("torch") is None:
    print("not tested: python3 has no torch (Debian: python3-torch)")
    sys.exit(0)
import torch  # noqa: E402


def by_definition(q, k, v, sinks, scale, causal, window):
    """q [b, s, g, r, d], k [b, t, g, d], v [b, t, g, e], sinks [g, r]."""
    scores = scale * torch.einsum("bsgrd,btgd->bgrst", q, k)
    s, t = torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])[None, :]
    hidden = (t > s) if causal else torch.zeros(len(s), t.shape[1], dtype=torch.bool)
    if window:
        hidden = hidden | (s - t >= window)
    scores = scores.masked_fill(hidden, float("-inf"))
    column = sinks[None, :, :, None, None].expand(*scores.shape[:-1], 1)
    share = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    return torch.einsum("bgrst,btge->bsgre", share, v)


def watch(job, found):
    """Wraps the ops of the script's runtime that a layer's attention is made of."""
    param, attention, multiply, held = job.param, job.attention, job.multiply, {}

    def watched_param(self, prefix, path, types):
        value = param(self, prefix, path, types)
        if path.endswith("attention.sinks"):
            held["sinks"] = value.ordered(["g", "r"])
        return value

    def watched_attention(self, q, k, v, *positions, types, **how):
        made = attention(self, q, k, v, *positions, types=types, **how)
        held["context"], held["how"] = made[0], how
        held["qkv"] = q.ordered(["b", "s", "g", "r", "d"]), k.ordered(["b", "t", "g", "d"]), v.ordered(["b", "t", "g", "e"])
        return made

    def watched_multiply(self, a, b, types):
        made = multiply(self, a, b, types)
        if a is held.get("context"):
            how = held["how"]
            wanted = by_definition(*held["qkv"], held["sinks"], how["scale"], how.get("causal", 0), how.get("window", 0))
            apart = (made.ordered(["b", "s", "g", "r", "e"]) - wanted).abs().max() / wanted.abs().max()
            without = (a.ordered(["b", "s", "g", "r", "e"]) - wanted).abs().max() / wanted.abs().max()
            found.append((how.get("window", 0), apart.item(), without.item()))
            held.clear()
        return made

    job.param, job.attention, job.multiply = watched_param, watched_attention, watched_multiply


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "job.py")
        subprocess.run([PACELINE, "program", "torch", "--model", MODEL, "--gbs", "4", "--seq", "12", "--dtype", "fp32", "--strategy",
                        "pp=1,dp=1,tmp=1,mbs=4", "-o", script], check=True)
        found = []
        os.environ.update(RANK="0", WORLD_SIZE="1")
        sys.argv = [script, "--dtype", "fp64", "--iterations", "1", "--meet", os.path.join(folder, "meet")]
        with open(script) as file:
            text = file.read()
        spec = importlib.util.spec_from_file_location("job", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        watch(module.Job, found)
        exec(compile(text[text.index("if __name__"):], script, "exec"), {**vars(module), "__name__": "__main__"})
    for window, apart, without in found:
        print(f"window {window}: apart by {apart:.1e}, and by {without:.1e} without sinks")
        assert apart < 1e-12 and without > 1e-2
    assert {window > 0 for window, _, _ in found} == {True, False}, found


if __name__ == "__main__":
    main()
