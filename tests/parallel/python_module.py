#!/usr/bin/env python3
"""The Python module: every row of a sweep is read with the types that one expects, its strategies go back into a simulation that gives
the same time to the bit, a refusal is an exception with the command's words, and three plots are drawn where there is matplotlib."""
import os
import subprocess
import sys
import tempfile

source = os.path.abspath(os.environ.get("SOURCE_DIR", "."))
sys.path.insert(0, os.path.join(source, "search", "python"))
import paceline

job = dict(platform="amp-homogeneous", model="gpt2-345m", gbs=32)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([os.environ["PACELINE"], "sweep", *paceline._words(job), "--pp=1,2,4", "-o", "sweep.h5", "--quiet"], check=True)
    frame = paceline.read("sweep.h5")
    assert len(frame) > 3000 and set(frame.schedule) == {"1f1b", "gpipe", "interleaved"}, frame.schedule.unique()
    assert frame.fits.dtype == bool and frame.fits.sum() > 100
    assert frame.attrs["columns"]["iter_time_s"]["units"] == "s" and frame.attrs["file"]["command"].startswith("paceline sweep ")
    best = frame[frame.fits].nsmallest(5, "iter_time_s")
    for _, row in best.iterrows():
        again = paceline.simulate(**job, strategy=paceline.strategy(row))
        assert again["iter_time_s"] == row.iter_time_s and again["fits"], (row.iter_time_s, again["iter_time_s"])
    found = paceline.search(**job, pp="1,2,4")
    assert found["top"][0]["iter_time_s"] == best.iloc[0].iter_time_s, found["top"]
    try:
        paceline.simulate(**job, strategy="pp=3")
        raise SystemExit("a refusal is no exception")
    except paceline.PacelineError as error:
        assert error.status == 2 and str(error).startswith("paceline simulate: strategy: "), error
    try:
        import matplotlib
    except ImportError:
        print(f"{len(frame)} rows read, five strategies simulated again to the bit; no matplotlib: no plots")
        sys.exit()
    matplotlib.use("Agg")
    fit = frame[frame.fits]
    plots = {"front.png": fit.plot.scatter("peak_mem_bytes", "iter_time_s", logy=True),
             "recompute.png": fit.groupby("recompute").iter_time_s.min().plot.bar(),
             "where.png": best[["compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "bubble_s"]].plot.bar(stacked=True)}
    for name, axes in plots.items():
        axes.figure.savefig(name)
        assert os.path.getsize(name) > 5000, name
print(f"{len(frame)} rows read, five strategies simulated again to the bit, three plots")
