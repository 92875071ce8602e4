#!/usr/bin/env python3
"""A results file as users open it: h5py, pandas, xarray (engine h5netcdf), ncdump; and search/README.md names every column."""
import json
import os
import subprocess
import tempfile

import h5py
import numpy as np
import pandas as pd
import xarray as xr

paceline = os.environ["PACELINE"]
source = os.environ["SOURCE_DIR"]
os.environ.update(OMPI_MCA_btl="self,vader", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def run(*arguments):
    return subprocess.run([paceline, *arguments], cwd=source, check=True, capture_output=True, text=True).stdout


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "sweep.h5")
    summary = json.loads(run("sweep", "--platform", "platforms/amp-homogeneous.xml", "--model",
                             "workloads/models/gpt2-345m.json", "--gbs", "32", "--mbs", "1", "--json", "-o", path))
    n = summary["candidates"]
    assert n > 100 and summary["simulated_now"] == n

    with h5py.File(path, "r") as file:
        attributes = dict(file.attrs)
        assert attributes["paceline_schema"] == 1 and attributes["gbs"] == 32 and attributes["dtype"] == "fp16"
        assert attributes["command"].startswith("paceline sweep --platform ") and path not in attributes["command"]
        assert len(attributes["platform_digest"]) == 16 and len(attributes["model_digest"]) == 16
        for version in ("paceline", "simgrid", "hdf5", "mpi"):
            assert attributes[version + "_version"], version
        columns = [name for name in file if name != "candidate"]
        assert "iter_time_s" in columns and "status" in columns
        for name in columns:
            dataset = file[name]
            assert dataset.shape == (n,) and dataset.chunks is None and dataset.compression is None, name
            assert dataset.dims[0].label == "" and dataset.dims[0][0].name == "/candidate", name
            assert dataset.attrs["long_name"], name
        assert file["iter_time_s"].attrs["units"] == "s" and file["peak_mem_bytes"].attrs["units"] == "B"
        assert np.isnan(file["iter_time_s"].fillvalue) and file["status"].fillvalue == 0
        assert list(file["status"].attrs["flag_values"]) == [0, 1, 2, 3]
        assert file["status"].attrs["flag_meanings"] == "pending done oom failed"
        frame = pd.DataFrame({name: file[name][:] for name in columns})

    frame["schedule"] = frame["schedule"].str.decode("utf-8")
    assert (frame.status > 0).all() and (frame.pp * frame.dp * frame.tmp == 16).all()
    assert set(frame.schedule) == {"gpipe", "1f1b", "interleaved"}
    parts = frame[["compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "bubble_s"]].sum(axis=1)
    assert np.allclose(parts, frame.iter_time_s, rtol=1e-6), abs(parts / frame.iter_time_s - 1).max()
    assert ((frame.fits == 1) == (frame.status == 1)).all()
    assert ((frame.peak_mem_bytes <= frame.mem_capacity_bytes) == (frame.fits == 1)).all()
    best = frame[frame.fits == 1].iter_time_s.idxmin()
    assert best == summary["best"]["candidate"] and frame.iter_time_s[best] == summary["best"]["iter_time_s"]

    dataset = xr.open_dataset(path, engine="h5netcdf")
    assert dataset.sizes == {"candidate": n} and dataset.iter_time_s.units == "s"
    assert int(dataset.iter_time_s.where(dataset.fits == 1).argmin()) == best
    assert dataset.pp.dtype == np.int32 and dataset.run_digest.dtype == np.uint64
    dataset.close()

    shown = json.loads(run("show", path, "--json", "--top", "3", "--where", "fits and tmp<=8"))["rows"]
    wanted = frame[(frame.fits == 1) & (frame.tmp <= 8)].sort_values("iter_time_s", kind="stable").head(3)
    assert [row["candidate"] for row in shown] == list(wanted.index)
    assert [row["iter_time_s"] for row in shown] == list(wanted.iter_time_s)
    assert list(shown[0]) == ["candidate"] + [c for c in shown[0] if c in columns] and len(shown[0]) == len(columns) + 1
    csv = pd.read_csv(__import__("io").StringIO(run("show", path, "--csv", "--where", "true", "--sort", "candidate")), float_precision="round_trip")
    assert (csv.iter_time_s == frame.iter_time_s).all() and list(csv.columns[1:]) == list(shown[0])[1:]

    # The netCDF library: every column's name, and values of numbers. (It cannot read fixed-length texts, whoever wrote them.)
    header = subprocess.run(["ncdump", "-h", path], check=True, capture_output=True, text=True).stdout
    assert all(" %s(candidate)" % name in header for name in columns)
    values = subprocess.run(["ncdump", "-v", "pp", path], check=True, capture_output=True, text=True).stdout
    assert values.split(" pp = ")[1].split(";")[0].split(",")[0].strip() == str(frame.pp[0])

    readme = open(os.path.join(source, "search/README.md"), encoding="utf-8").read()
    with h5py.File(path, "r") as file:
        for name in columns:
            line = "| `%s` | %s | %s |" % (name, file[name].attrs.get("units", ""), file[name].attrs["long_name"])
            assert line in readme, "search/README.md lacks: " + line
print("h5py, pandas and xarray read", n, "rows of", len(columns), "columns")
