"""What the benches of whole commands share: CPU time, memory and wall time of a child, and the lines of tests/bench/run.sh.

Environment: PACELINE (the program), SOURCE_DIR (the repository); BENCH_BASE (optional: the build folder of another
Paceline, which takes turns with this one). Only Python's standard library.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("SOURCE_DIR", ".")
PROGRAM = os.environ["PACELINE"]
BASE = os.path.join(os.environ["BENCH_BASE"], "paceline") if os.environ.get("BENCH_BASE") else None
SMALL = "--small" in sys.argv


def source_of(build):
    """The repository that a build folder stands in: a program reads the data files of its own time."""
    folder = os.path.abspath(build)
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.isdir(os.path.join(folder, "platforms", "devices")):
            return folder
    return SOURCE


BASE_SOURCE = source_of(os.environ["BENCH_BASE"]) if BASE else SOURCE
CORES = len(os.sched_getaffinity(0))

# As in tests/parallel/mpi_environment.sh.inc.
os.environ.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader", OMPI_MCA_hwloc_base_binding_policy="none",
                  OMPI_MCA_mpi_yield_when_idle="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMP_WAIT_POLICY="passive")


class Run:
    """cpu_s: of the process and all its children; peak_bytes: of the largest of them."""

    def __init__(self, program, arguments, ranks=0):
        launcher = ["mpirun", "-n", str(ranks)] if ranks else []
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            start = time.monotonic()
            source = BASE_SOURCE if program == BASE else SOURCE
            child = subprocess.Popen(launcher + [program] + arguments, stdout=output, stderr=errors, cwd=source)
            _, status, usage = os.wait4(child.pid, 0)
            self.wall_s = time.monotonic() - start
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.output = output.read().decode()
            errors.seek(0)
            if child.returncode != 0:
                sys.exit(f"{' '.join(launcher + [program] + arguments)}: exit status {child.returncode}: {errors.read().decode()}")
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024


n_ratios = 0


def ratio(what, against, samples):
    global n_ratios
    samples = sorted(samples if isinstance(samples, list) else [samples])
    spread = f"{samples[0]:.3g} to {samples[-1]:.3g}, {len(samples)} samples" if len(samples) > 1 else "-"
    print(f"ratio | {what} | {against} | {statistics.median(samples):.3g} | {spread}", flush=True)
    n_ratios += 1


def end(name):
    print(f"{name}: {n_ratios} ratios{', of a small run' if SMALL else ''}")
    sys.exit(0 if n_ratios else 1)


def platform(folder, nodes, program=PROGRAM):
    """A file with `nodes` DGX A100, as `program` makes it."""
    path = os.path.join(folder, f"a100-{8 * nodes}{'-base' if program == BASE else ''}.xml")
    Run(program, ["platform", "make", "dgx-a100", "--nodes", str(nodes), "-o", path])
    return path


def model(name):
    return os.path.join("workloads", "models", name + ".json")
