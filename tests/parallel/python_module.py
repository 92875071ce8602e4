#!/usr/bin/env python3
"""The Python module: every row of a sweep is read with the types that one expects, its strategies go back into a simulation that gives
the same time to the bit, a refusal is an exception with the command's words, and sweep_in_plots.py draws its three plots where there is matplotlib."""
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
    experts = dict(platform="dgx-a100", model="tiny-deepseek", gbs=16, seq=64)
    subprocess.run([os.environ["PACELINE"], "sweep", *paceline._words(experts), "--pp=1", "--tmp=1,2", "--ep=2", "--etp=1,tmp", "--sp=on", "--ep-overlap=off,on,delayed,shared", "-o", "experts.h5", "--quiet"], check=True)
    rows = paceline.read("experts.h5")
    assert set(rows.ep_overlap) == {0, 1, 2, 3} and (rows.etp > 1).any()
    for _, row in [*rows[rows.ep_overlap > 0].groupby("ep_overlap").head(1).iterrows(), *rows[rows.etp > 1].head(2).iterrows()]:
        assert paceline.simulate(**experts, strategy=paceline.strategy(row))["iter_time_s"] == row.iter_time_s, paceline.strategy(row)
    found = paceline.search(**job, pp="1,2,4")
    assert found["top"][0]["iter_time_s"] == best.iloc[0].iter_time_s, found["top"]
    try:
        paceline.simulate(**job, strategy="pp=3")
        raise SystemExit("a refusal is no exception")
    except paceline.PacelineError as error:
        assert error.status == 2 and str(error).startswith("paceline simulate: strategy: "), error
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print(f"{len(frame)} rows read, five strategies simulated again to the bit; no matplotlib: no plots")
        sys.exit()
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": sys.path[0]}
    said = subprocess.run([sys.executable, os.path.join(sys.path[0], "sweep_in_plots.py"), "sweep.h5"], env=environment, check=True, capture_output=True, text=True)
    assert said.stderr == "" and len(said.stdout.splitlines()) == 12, said  # the command, a head and ten lines
    for name in ("time_over_memory", "best_of_each", "where_the_time_goes"):
        assert os.path.getsize(name + ".png") > 10000, name
print(f"{len(frame)} rows read, five strategies simulated again to the bit, three plots")
