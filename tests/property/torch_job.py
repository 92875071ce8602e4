#!/usr/bin/python3
"""The script that `paceline program torch` writes computes what the program says: its losses on gloo ranks are those of
Paceline's executor, through updates of the weights. And what it cannot write it refuses."""
import os
import subprocess
import sys
import tempfile

PACELINE = os.environ["PACELINE"]
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "models")
CASES = [("tiny-gpt2", "pp=1,dp=2,tmp=1,mbs=1,split=5:3"), ("tiny-gpt2", "pp=1,dp=2,tmp=1,mbs=2", "--attention", "unfused"),
         ("tiny-llama", "pp=2,dp=1,tmp=1,mbs=4"),
         (f"{MODELS}/tiny-bloom.json", "pp=1,dp=1,tmp=2,mbs=4"),
         (f"{MODELS}/tiny-gpt-oss.json", "pp=1,dp=2,tmp=1,mbs=2"), ("tiny-gpt2", "pp=1,dp=1,tmp=2,mbs=4,sp=1"),
         ("tiny-gpt2", "pp=1,dp=2,tmp=1,mbs=2"), (f"{MODELS}/tiny-bloom.json", "pp=1,dp=1,tmp=2,mbs=4", "--attention", "unfused")]


def losses(folder, model, strategy, steps, said):
    """Of the executor that holds all devices, by verify, and of the script."""
    program, script, meet = (os.path.join(folder, name) for name in ("p.plir", "job.py", "meet"))
    job = ["--model", model, "--gbs", "8", "--seq", "8", "--strategy", strategy]
    subprocess.run([PACELINE, "program", "print", *job, "--dtype", "fp32", *said, "--force", "-o", program], check=True)
    subprocess.run([PACELINE, "program", "torch", program, "--force", "-o", script], check=True)
    if os.path.exists(meet):
        os.remove(meet)
    ranks = [subprocess.Popen([sys.executable, script, "--dtype", "fp64", "--iterations", str(steps), "--meet", meet],
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}, stdout=subprocess.PIPE, text=True)
             for rank in range(2)]
    printed = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), printed
    theirs = float(printed[0].splitlines()[-1].split()[-1])
    verified = subprocess.run([PACELINE, "verify", *job, "--steps", str(steps), "--json"], check=True, capture_output=True, text=True)
    ours = float(next(line for line in verified.stdout.splitlines() if '"distributed_loss"' in line).split(":")[1].strip(" ,"))
    return ours, theirs


def main():
    try:
        import torch.distributed  # noqa: F401
    except ImportError:
        print("no python3-torch: nothing is compared")
        return
    cases = CASES if os.environ.get("PACELINE_LONG") else CASES[:5]
    with tempfile.TemporaryDirectory() as folder:
        for model, strategy, *said in cases:
            ours, theirs = losses(folder, model, strategy, 3, said)
            print(f"{model} {strategy} {' '.join(said)}: {ours:.15g} and {theirs:.15g}")
            assert abs(ours - theirs) < 1e-11 * abs(ours)
        refused = subprocess.run([PACELINE, "program", "torch", "--model", "tiny-llama", "--gbs", "8", "--seq", "8", "--strategy",
                                  "pp=1,dp=1,tmp=1,mbs=4,cp=2", "-o", os.path.join(folder, "no.py")], capture_output=True, text=True)
        assert refused.returncode in (1, 2) and "ring_attention of @layer cannot be written for PyTorch" in refused.stderr, refused
        assert refused.stderr.count("\n") == 1 and not os.path.exists(os.path.join(folder, "no.py"))


if __name__ == "__main__":
    main()
