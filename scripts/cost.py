#!/usr/bin/env python3
"""Measures what an event costs prony in CPU time, beside the least that a client can do (scripts/exact/bare.c), on the same streams.

    python3 scripts/cost.py [--runs 5] [--streams 1000] [--events 1,4] [--stamps wire,socket]

Both read the exact server (scripts/exact/server.c) on processor 0, by turns, on processor 1: 100 events/s a stream, so many of them a TCP
segment. bare.c reads with recvmsg and throws away what it reads; prony frames, stamps, decodes, records and writes its journal. Printed are
medians: the CPU time of the whole process an event, the part of it in user space, and that of prony's engine thread, which is what stands
between a token and its moment.

Needs Linux with two processors, cc, taskset, and Go unless $PRONY names a prony binary.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOKENS, TTFT_US, ITL_US, PORT = 100, 50_000, 10_000, 9700


def main():
    numbers = lambda s: [int(x) for x in s.split(",")]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=5, help="of each, by turns (default 5)")
    p.add_argument("--streams", type=int, default=1000)
    p.add_argument("--events", type=numbers, default=[1, 4], help="a segment (default 1,4)")
    p.add_argument("--stamps", type=lambda s: s.split(","), default=["wire", "socket"], help="(default wire,socket)")
    p.add_argument("--waves", type=int, default=5, help="requests of each stream in a run, of a second each (default 5)")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="cost") as tmp:
        tmp = Path(tmp)
        for name, source in [("exact", "server.c"), ("bare", "bare.c")]:
            subprocess.run(["cc", "-O2", "-o", tmp / name, ROOT / "scripts/exact" / source], check=True)
        prony = os.environ.get("PRONY")
        if not prony:
            prony = tmp / "prony"
            subprocess.run(["go", "build", "-o", prony, "./cmd/prony"], cwd=ROOT, check=True)
        print("events/segment  client           us/event  of bare  in user space  engine thread: user  system")
        for events in a.events:
            measure(a, tmp, prony, events)


def measure(a, tmp, prony, events):
    server = subprocess.Popen(["taskset", "-c", "0", tmp / "exact", "-p", str(PORT), "-f", str(TTFT_US), "-i", str(ITL_US * events), "-b", str(events)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        rows = {}
        for k in range(a.runs):
            turns = ["bare"] + a.stamps
            for who in turns if k % 2 == 0 else reversed(turns):
                row = bare(a, tmp) if who == "bare" else run(a, tmp, prony, who)
                rows.setdefault(who, []).append(row)
                time.sleep(0.3)
    finally:
        server.terminate()
        server.wait()
    middle = lambda who, i: statistics.median(r[i] for r in rows[who])
    base = middle("bare", 0)
    print(f"{events:14}  {'bare recvmsg':16} {middle('bare', 0):8.2f} {1:8.2f} {middle('bare', 1):14.2f}")
    for who in a.stamps:
        print(f"{events:14}  {'prony, ' + who:16} {middle(who, 0):8.2f} {middle(who, 0) / base:8.2f} {middle(who, 1):14.2f} {middle(who, 2):20.2f} {middle(who, 3):7.2f}")


def bare(a, tmp):
    out = subprocess.run(["taskset", "-c", "1", tmp / "bare", "-p", str(PORT), "-c", str(a.streams), "-t", str(a.waves), "-n", str(TOKENS)],
                         check=True, capture_output=True, text=True)
    d = json.loads(out.stdout)
    events = a.streams * TOKENS * d["seconds"] / ((TTFT_US + (TOKENS - 1) * ITL_US) / 1e6)  # each stream begins again at its end
    return [(d["user_s"] + d["sys_s"]) / events * 1e6, d["user_s"] / events * 1e6]


def run(a, tmp, prony, stamps):
    out = tmp / "run"
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run(["taskset", "-c", "1", prony, "run", "--url", f"http://127.0.0.1:{PORT}", "--engine", "openai", "--model", "m", "--prompt", "hi",
                    "--osl", str(TOKENS), "--concurrency", str(a.streams), "--num-requests", str(a.streams * a.waves), "--stamps", stamps,
                    "--out", out, "--quiet"], capture_output=True)
    c = json.loads((out / "manifest.json").read_text())["client"]
    requests = json.loads((out / "summary.json").read_text())["requests"]
    if requests["ok"] != a.streams * a.waves or c["stamp"] != stamps:
        print(f"prony: {requests['ok']} of {a.streams * a.waves} requests, stamps {c['stamp']}", file=sys.stderr)
    events = requests["ok"] * TOKENS
    t = c["toll"]
    return [x / 1e3 / events for x in (t["cpu_user_ns"] + t["cpu_system_ns"], t["cpu_user_ns"], c.get("engine_user_ns", 0), c.get("engine_system_ns", 0))]


main()
