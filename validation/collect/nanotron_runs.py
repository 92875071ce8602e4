#!/usr/bin/env python3
"""Says of each row of nanotron's grid how its run was made, in the framework's name and the notes.

The page that the rows are from shows throughput alone. The table behind it has a line per job: what NCCL moved before
training began (nanotron's trainer.py, measure_bandwidth: 1 GiB, ten times), and whether the job came behind the fix of
its pipeline ("after_pp_fix"), ran out of memory or ended otherwise. A row is the run of its configuration whose
throughput, rounded, is the row's; of one that did not get through the configuration's other jobs say why.

    nanotron_runs.py bench_final2_mfu2.csv ../measured/nanotron_ultrascale.csv > new.csv
    zcat ../memory/nanotron_fit_or_oom.csv.gz | nanotron_runs.py bench_final2_mfu2.csv /dev/stdin | gzip -9n > new.csv.gz
"""
import csv
import sys

# Of an all-gather in a node, GB/s: of the jobs 432 have 250 to 266, and 1,333 have less than 248.
BARE_GATHER = 250
KEY = {"num_layers": "n_layers", "dp": "dp", "pp": "pp", "tp": "tp", "mbs": "mbs", "zero_stage": "zero_stage"}


def jobs_of(path):
    jobs = {}
    with open(path, newline="") as table:
        for line in csv.DictReader(table):
            jobs.setdefault(tuple(int(line[c]) for c in KEY), []).append(line)
    return jobs


def job_of(row, same):
    """None where no run has the row's throughput, to what it is rounded to."""
    wanted = float(row["tokens_per_s_per_gpu"])
    near = [j for j in same if j["status"] == "Success" and abs(float(j["tok/s/gpu"]) - wanted) <= 0.51]
    return min(near, key=lambda j: abs(float(j["tok/s/gpu"]) - wanted)) if near else None


def end_of(same):
    """Of a run that did not get through: "oom", or "ended otherwise"."""
    ends = {job["status"] for job in same}
    return "oom" if "OOM" in ends or not ends else "ended otherwise"


def ways_of(job, piped):
    ways = []
    if float(job["AG Intra-node (GB/s)"]) < BARE_GATHER:
        ways.append("checked collectives")
    if piped and job["after_pp_fix"] == "False":
        ways.append("polled sends")
    return ways


def main(table, measured):
    jobs = jobs_of(table)
    with open(measured, newline="") as file:
        rows = csv.DictReader(file)
        out = csv.DictWriter(sys.stdout, rows.fieldnames, lineterminator="\n")
        out.writeheader()
        counts = {}
        for row in rows:
            same = jobs.get(tuple(int(row[c] or 0) for c in KEY.values()), [])
            if row.get("status", "ok") != "ok":
                row["status"] = end_of(same)
                counts[row["status"]] = counts.get(row["status"], 0) + 1
                out.writerow(row)
                continue
            ways, said, job = [], "no job of the table has this throughput", job_of(row, same)
            if job:
                ways = ways_of(job, int(row["pp"]) > 1)
                said = f"job {job['job_id']}: all-gather in a node {job['AG Intra-node (GB/s)']} GB/s before training"
            row["framework"] = ", ".join([row["framework"].split(",")[0]] + ways)
            row["notes"] = row["notes"].split("; job ")[0].split("; no job ")[0] + "; " + said
            counts[row["framework"]] = counts.get(row["framework"], 0) + 1
            out.writerow(row)
    for name, n in counts.items():
        print(f"{n:6d} {name}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
