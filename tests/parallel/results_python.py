#!/usr/bin/env python3
"""A results file as users open it: h5py, pandas, xarray (engine h5netcdf), ncdump; and search/results/README.md names every column."""
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
        assert attributes["paceline_schema"] == 4 and attributes["gbs"] == 32 and attributes["dtype"] == "fp16"
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
    parts = frame[["compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "context_comm_s", "expert_comm_s", "bubble_s"]].sum(axis=1)
    assert np.allclose(parts, frame.iter_time_s, rtol=1e-6), abs(parts / frame.iter_time_s - 1).max()
    assert ((frame.fits == 1) == (frame.status == 1)).all()
    assert ((frame.peak_mem_bytes <= frame.mem_capacity_bytes) == (frame.fits == 1)).all()
    whole = [name for name in frame if name.endswith("_bytes")]
    assert len(whole) == 9 and all(frame[name].dtype == np.int64 and (frame[name] >= 0).all() for name in whole)
    assert (frame.iter_time_low_s < frame.iter_time_s).all() and (frame.iter_time_s < frame.iter_time_high_s).all()
    best = frame[frame.fits == 1].iter_time_s.idxmin()
    told = json.loads(run("simulate", "--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json", "--gbs", "32",
                          "--strategy", ",".join("%s=%s" % (key, frame[key][best].decode() if isinstance(frame[key][best], bytes) else frame[key][best])
                                                 for key in "pp dp tmp mbs schedule vpp sp recompute zero overlap order assign".split()), "--json"))
    assert all(told[name] == frame[name][best] for name in ("iter_time_s", "iter_time_low_s", "iter_time_high_s", "peak_mem_bytes"))
    assert best == summary["best"]["candidate"] and frame.iter_time_s[best] == summary["best"]["iter_time_s"]

    dataset = xr.open_dataset(path, engine="h5netcdf")
    assert dataset.sizes == {"candidate": n} and dataset.iter_time_s.units == "s"
    assert int(dataset.iter_time_s.where(dataset.fits == 1).argmin()) == best
    assert set(dataset.schedule.values) == {"gpipe", "1f1b", "interleaved"}
    assert (dataset.schedule == "1f1b").sum() == (frame.schedule == "1f1b").sum() > 0
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

    readme = open(os.path.join(source, "search/results/README.md"), encoding="utf-8").read()
    with h5py.File(path, "r") as file:
        for name in columns:
            line = "| `%s` | %s | %s |" % (name, file[name].attrs.get("units", ""), file[name].attrs["long_name"])
            assert line in readme, "search/results/README.md lacks: " + line

    # A file of before: one line, from everything that reads files.
    with h5py.File(path, "r+") as file:
        file.attrs.modify("paceline_schema", np.int64(3))
    job = ["--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json", "--gbs", "32", "--mbs", "1"]
    for command in (["show", path], ["report", path, "-o", path + ".html"], ["sweep", *job, "-o", path, "--resume"]):
        refused = subprocess.run([paceline, *command], cwd=source, capture_output=True, text=True)
        assert refused.returncode == 2 and "has schema 3; this program reads and writes schema 4" in refused.stderr, refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1

# With features: more columns of the same kind, and some over candidates and stages; the rest of the file is as before.
with tempfile.TemporaryDirectory() as folder:
    job = ["--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json", "--gbs", "32"]
    space = ["--pp", "1,2,4", "--mbs", "1", "--quiet"]
    plain, path = os.path.join(folder, "plain.h5"), os.path.join(folder, "features.h5")
    run("sweep", *job, *space, "-o", plain)
    run("sweep", *job, *space, "--features", "-o", path)
    with h5py.File(path, "r") as file, h5py.File(plain, "r") as base:
        assert set(base) < set(file) and set(base) == set(columns) | {"candidate"}
        assert file.attrs["features"] == 1 and base.attrs["features"] == 0
        for name in base:
            assert file[name][:].tobytes() == base[name][:].tobytes(), name
        features = [name for name in file if name not in base and name != "stage"]
        flat = [name for name in features if file[name].ndim == 1]
        loads = [name for name in features if file[name].ndim == 2]
        assert len(flat) > 80 and len(loads) == 13 and list(file["stage"]) == [0, 1, 2, 3]
        for name in features:
            dataset = file[name]
            assert dataset.dtype == np.float64 and np.isnan(dataset.fillvalue) and dataset.chunks is None, name
            assert dataset.dims[0][0].name == "/candidate" and (dataset.ndim == 1 or dataset.dims[1][0].name == "/stage"), name
            line = "| `%s` | %s | %s |" % (name, dataset.attrs["units"], dataset.attrs["long_name"])
            assert line in readme, "search/results/README.md lacks: " + line
        frame = pd.DataFrame({name: file[name][:] for name in file if file[name].ndim == 1 and name != "stage"})
        stages = {name: file[name][:] for name in loads}

    # Divisions that hold for every candidate.
    kinds = ("gemm_s attention_s norm_s softmax_s elementwise_s embedding_s cross_entropy_s other_ops_s optimizer_s host_s "
             "overlap_slowdown_s").split()
    assert np.allclose(frame[kinds].sum(axis=1), frame.compute_s, rtol=1e-12)
    assert (frame.overlap_slowdown_s > -1e-12).all() and (frame.overlap_slowdown_s > 1e-3).any()
    passes = frame.forward_s + frame.backward_s + frame.recompute_s + frame.optimizer_s
    assert (passes <= frame.compute_s * (1 + 1e-12)).all()
    assert ((frame.recompute_s > 0) == (frame.recompute != b"none")).all()
    for pp in (1, 2, 4):
        rows = frame.pp == pp
        for name in loads:
            assert np.isfinite(stages[name][rows, :pp]).all() and np.isnan(stages[name][rows, pp:]).all(), name
    whole = sum(stages["stage_%s_s" % part] for part in ("compute", "tensor_comm", "pipeline_comm", "data_comm", "context_comm", "expert_comm", "bubble"))
    assert np.array_equal(np.nanmax(whole, axis=1), frame.iter_time_s) and np.array_equal(np.nanmin(whole, axis=1), frame.iter_time_s)
    assert np.allclose(np.nanmax(stages["stage_peak_mem_bytes"], axis=1), frame.peak_mem_bytes)
    assert (np.nansum(stages["stage_layers"], axis=1) == 24).all()
    assert (frame.tensor_group_size == frame.tmp).all() and (frame.data_group_size == frame.dp).all() and (frame.expert_group_size == 1).all()
    assert (frame.qkv_m == frame.mbs * 1024).all() and (frame.qkv_n == 3072 / frame.tmp).all() and (frame.mlp_down_k == 4096 / frame.tmp).all()
    assert ((frame.pipeline_send_calls > 0) == (frame.pp > 1)).all() and (frame.other_comm_calls == 0).all()
    assert ((frame.data_all_reduce_calls + frame.data_reduce_scatter_calls > 0) == (frame.dp > 1)).all()
    # Without recomputation and tensor parallelism everybody computes the same matrix products.
    none = frame[(frame.recompute == b"none") & (frame.tmp == 1) & (frame.pp == 1)]
    assert np.allclose(none.gemm_flops, none.gemm_flops.iloc[0], rtol=1e-12) and len(none) > 2

    # `explain` tells the same of single candidates.
    compared = 0
    for candidate in frame[frame.pp == 4].index[::37]:
        row = frame.loc[candidate]
        words = ["%s=%s" % (key, row[key].decode() if isinstance(row[key], bytes) else row[key])
                 for key in "pp dp tmp mbs schedule vpp sp recompute zero overlap order assign".split()]
        told = json.loads(run("explain", *job, "--strategy", ",".join(words), "--stage", "all", "--json"))
        assert told["run_digest"] == "%016x" % row.run_digest
        for stage in told["stages"]:
            for name in "compute_s tensor_comm_s pipeline_comm_s data_comm_s bubble_s".split():
                assert stages["stage_" + name][candidate, stage["stage"]] == stage[name], (candidate, name)
            flops = sum(kind.get("flops", 0) for kind in stage["kinds"])
            assert np.isclose(stages["stage_flops"][candidate, stage["stage"]], flops, rtol=1e-12)
        alone = np.mean([sum(kind.get("alone_s", 0) for kind in stage["kinds"] if kind["kind"] == "gemm") for stage in told["stages"]])
        assert np.isclose(row.gemm_s, alone, rtol=1e-9), (candidate, row.gemm_s, alone)
        compared += 1
    assert compared >= 5

    dataset = xr.open_dataset(path, engine="h5netcdf")
    assert dataset.sizes == {"candidate": len(frame), "stage": 4}
    assert dataset.stage_compute_s.dims == ("candidate", "stage") and dataset.stage_compute_s.units == "s"
    alike = (frame.n_classes == frame.pp).values  # all devices of a stage are
    assert alike.sum() > 100 and np.allclose(dataset.stage_compute_s.mean("stage")[alike], frame.compute_s[alike], rtol=1e-12)
    dataset.close()

    shown = json.loads(run("show", path, "--json", "--where", "fits >= 0 and gemm_s < 0.9 * compute_s and data_group_nodes == 1", "--sort", "-gemm_s"))["rows"]
    wanted = frame[(frame.gemm_s < 0.9 * frame.compute_s) & (frame.data_group_nodes == 1)]
    assert len(shown) == len(wanted) > 0 and shown[0]["gemm_s"] == wanted.gemm_s.max() and len(shown[0]) == len(frame.columns)
    refused = subprocess.run([paceline, "show", plain, "--where", "gemm_s > 1"], cwd=source, capture_output=True, text=True)
    assert refused.returncode == 2 and "comes with paceline sweep --features" in refused.stderr, refused.stderr
    for file, more in ((plain, ["--features"]), (path, [])):
        refused = subprocess.run([paceline, "sweep", *job, *space, *more, "-o", file, "--resume"], cwd=source, capture_output=True, text=True)
        assert refused.returncode == 2 and "features is not the one of this run" in refused.stderr, refused.stderr

print("h5py, pandas and xarray read", n, "rows of", len(columns), "columns")
