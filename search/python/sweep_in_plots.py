# %% [markdown]
# A sweep in three plots, cell by cell: for Jupyter and editors that know `# %%`, or as it is:
#
#     paceline sweep --platform dgx-h100:4 --model llama-3.1-8b --gbs 256 -o sweep.h5
#     PYTHONPATH=$(pkg-config --variable=datadir paceline)/python python3 sweep_in_plots.py sweep.h5

# %% What was swept, and the best that fits
import sys

import matplotlib.pyplot as plt
import paceline

frame = paceline.read(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].endswith(".h5") else "sweep.h5")
fit = frame[frame.fits]
best = fit.nsmallest(10, "iter_time_s")
print(frame.attrs["file"]["command"])
print(best[["pp", "dp", "tmp", "mbs", "schedule", "recompute", "zero", "iter_time_s", "mfu", "peak_mem_bytes"]].to_string(index=False))

# %% Time over memory, and the strategies that nothing beats in both
figure, axes = plt.subplots(figsize=(7, 4.5))
for pp, group in fit.groupby("pp"):
    axes.scatter(group.peak_mem_bytes / 2**30, group.iter_time_s, s=8, label=f"pp={pp}")
front = fit.sort_values(["peak_mem_bytes", "iter_time_s"])
front = front[front.iter_time_s == front.iter_time_s.cummin()]
axes.step(front.peak_mem_bytes / 2**30, front.iter_time_s, where="post", color="black", linewidth=1)
axes.set(xlabel="peak memory, GiB", ylabel="iteration time, s", yscale="log", title="Time over memory")
axes.legend(fontsize="small")
figure.savefig("time_over_memory.png", dpi=150)

# %% The best of each, with what 80 % of such runs take
figure, axes = plt.subplots(figsize=(7, 4.5))
each = fit.loc[fit.groupby(["pp", "tmp"]).iter_time_s.idxmin()].nsmallest(12, "iter_time_s")
names = [f"pp={row.pp} dp={row.dp} tmp={row.tmp}" for row in each.itertuples()]
apart = [each.iter_time_s - each.iter_time_low_s, each.iter_time_high_s - each.iter_time_s]
axes.errorbar(each.iter_time_s, names, xerr=apart, fmt="o", capsize=3)
axes.invert_yaxis()
axes.set(xlabel="iteration time, s", title="The best of each, with its 80 % interval")
figure.tight_layout()
figure.savefig("best_of_each.png", dpi=150)

# %% Where the time of the best ten goes
figure, axes = plt.subplots(figsize=(7, 4.5))
parts = {"compute_s": "computing", "tensor_comm_s": "tensor", "pipeline_comm_s": "pipeline", "data_comm_s": "data", "bubble_s": "waiting"}
left = 0 * best.iter_time_s
names = [f"{rank}. pp={row.pp} dp={row.dp} tmp={row.tmp} mbs={row.mbs}" for rank, row in enumerate(best.itertuples(), 1)]
for column, name in parts.items():
    axes.barh(names, best[column], left=left, label=name)
    left = left + best[column]
axes.invert_yaxis()
axes.set(xlabel="seconds of an iteration", title="Where the time goes")
axes.legend(fontsize="small")
figure.tight_layout()
figure.savefig("where_the_time_goes.png", dpi=150)
