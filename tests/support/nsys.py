#!/usr/bin/env python3
"""An export of nsys (SQLite), as far as readers look at it.

    nsys.py FILE [processes=N] [kind=good|view|strange|text|empty]"""
import os
import sqlite3
import sys


def main(path, *words):
    options = dict(processes=1, kind="good")
    for word in words:
        key, value = word.split("=")
        options[key] = type(options[key])(value)
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size=512")
    kind = options["kind"]
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    names = ["sgemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "cudaLaunchKernel_v7000", "cudaStreamWaitEvent_v3020", "iteration 4",
             "cudaDeviceSynchronize_v3020"]
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    columns = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
    if kind != "view":
        db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns}, demangledName INTEGER, shortName INTEGER)")
    else:  # a query that never ends
        db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) "
                   "SELECT start, start AS end, 0 AS deviceId, 0 AS streamId, 0 AS correlationId, 0 AS globalPid, 0 AS demangledName FROM n")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)")
    db.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER)")
    for p in range(options["processes"]) if kind not in ("view", "empty") else ():
        pid = (0x1000 + 7 * p) << 24
        device = options["processes"] - 1 - p
        rows = [(1000, 101000, device, 1, 7, 1, pid, 0, 0), (101500, 301500, device, 1, 20, 3, pid, 1, 1), (301500, 351500, device, 1, 7, 4, pid, 0, 0)]
        if kind == "strange":
            rows = [(2**62, 2**62 + 1, device, 1, 7, 1, pid, 0, 0)]
        if kind == "text":
            rows = [("now", "then", device, 1, 7, 1, pid, 0, 0)] + rows
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)",
                       [(0, 500, pid + 9, 1, 2), (600, 650, pid + 9, 2, 3), (700, 900, pid + 9, 3, 2), (950, 990, pid + 9, 5, 3),
                        (1000, 1200, pid + 9, 4, 2), (1300, 351600, pid + 9, 6, 5)])
        db.execute("INSERT INTO NVTX_EVENTS VALUES (0, 351600, NULL, 4, ?)", (pid + 9,))
    db.commit()
    db.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
