"""Checks that a client without enough of a processor voids its run, and that nobody else's slowness does.

    python3 scripts/throttle.py [--prony prony] [--quiet-runs 20] [--out DIR]

Each run goes against `prony sim` of its own. SIGSTOP and SIGCONT leave the client, or the server, 20 ms of every 100 ms. A throttled
client must get the caveat client_limited, whatever the shape of its load; one whose server is throttled or has stalls must not, nor one
that is left alone. Exit code 1 when one of them is judged otherwise.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

ON, OFF = 0.02, 0.08  # seconds
SHAPES = {
    "closed loop, 10": ["--concurrency", "10"],
    "50 requests/s": ["--request-rate", "50"],
    "rate inf": ["--request-rate", "inf", "--num-requests", "100"],
    "rate inf, 10 at once": ["--request-rate", "inf", "--max-concurrency", "10"],
}


def throttle(pid, ended):
    while not ended.is_set():
        os.kill(pid, signal.SIGSTOP)
        ended.wait(OFF)
        os.kill(pid, signal.SIGCONT)
        ended.wait(ON)


def measure(prony, out, load, slow=None, faults=(), more=()):
    """Runs once and returns the codes of the caveats. slow names whose process is throttled."""
    sim = subprocess.Popen([prony, "sim", "--listen", "127.0.0.1:0", "--until-stdin-closes", "--ttft", "50ms", "--itl", "10ms", *faults],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = sim.stdout.readline().split()[0]
    if "--num-requests" not in load:
        load = [*load, "--duration", "2s"]
    run = subprocess.Popen([prony, "run", "--url", url, "--isl", "16", "--osl", "20", *load, *more, "--out", out, "--quiet"],
                           stdout=subprocess.DEVNULL)
    ended = threading.Event()
    slowed = {"client": run, "server": sim}.get(slow)
    thread = threading.Thread(target=throttle, args=(slowed.pid, ended)) if slowed else None
    if thread:
        thread.start()
    # waitid leaves the process to be reaped, so that no signal goes to another that got its number.
    os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
    ended.set()
    if thread:
        thread.join()
    run.wait()
    sim.stdin.close()
    sim.wait()
    with open(os.path.join(out, "summary.json")) as f:
        summary = json.load(f)
    return run.returncode, {c["code"]: c["text"] for c in summary["caveats"]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--prony", default="prony")
    p.add_argument("--quiet-runs", type=int, default=20)
    p.add_argument("--out", help="folder of the runs; else they are deleted")
    args = p.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = args.out or tmp

        def check(name, wanted, load, **how):
            nonlocal wrong
            code, caveats = measure(args.prony, os.path.join(out, f"{time.time_ns()}"), load, **how)
            got = "client_limited" in caveats
            wrong += got != wanted
            print("ok   " if got == wanted else "WRONG", name, f"exit {code}:", caveats.get("client_limited", ", ".join(caveats)), flush=True)

        for shape, load in SHAPES.items():
            for stamps in ("auto", "user"):
                check(f"client throttled, {shape}, stamps {stamps}:", True, load, slow="client", more=["--stamps", stamps])
        for shape, load in SHAPES.items():
            check(f"server throttled, {shape}:", False, load, slow="server")
            check(f"server stalls, {shape}:", False, load, faults=["--faults", "stall@5:0.2"], more=["--timeout", "1s"])
        for i in range(args.quiet_runs):
            shape = list(SHAPES)[i % len(SHAPES)]
            check(f"left alone, {shape}:", False, SHAPES[shape])
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
