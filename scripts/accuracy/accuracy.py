#!/usr/bin/env python3
"""Measures by how much benchmark clients are off: reported TTFT minus true TTFT, over 1 to 1,000 streams, quiet and under CPU pressure.

    python3 scripts/accuracy/accuracy.py                           prony alone, with its three grades of stamps
    python3 scripts/accuracy/accuracy.py --venv ~/rivals --install and what can be had of vLLM's bench, AIPerf and guidellm
    python3 scripts/accuracy/accuracy.py --draw                    only draw the figure and the tables again, from the JSON

The truth comes from scripts/exact/server.c: when each request arrived at its socket, by the kernel's stamp, and when it wrote each token.
It sends the first of 100 tokens 50 ms after the arrival, then one every 10 ms. The server has processor 0 and the client processor 1,
whichever client it is; pressure is --busy processes that spin on processor 1 while the load runs. In each repeat all clients take their
turn at each level, in the opposite order to the repeat before. Each run is a closed loop of 2 requests a stream, without a warm-up.

A run that lasts longer than --limit is left out, and so are the client's higher levels in that condition. Results go to
docs/figures/accuracy.json after each run; runs that are there already are not made again, so a measurement can be stopped and continued
(--again starts anew). Then docs/figures/accuracy.svg and the tables in docs/accuracy.md are drawn from that file.

Five repeats of all take about half an hour, most of it rivals that start; --minutes 20 measures in several portions.

Needs Linux with two processors, cc, taskset, and Go unless $PRONY names a prony binary. --install needs pip and some GB of disk.
"""
import argparse
import json
import os
import platform
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True  # leave no __pycache__ in the tree
import clients
import page

ROOT = Path(__file__).resolve().parents[2]
TTFT_US, ITL_US = 50_000, 10_000
SERVER_CPU, CLIENT_CPU = 0, 1
LEAST_REQUESTS = 5  # of a run, at one stream
CONDITIONS = ["quiet", "busy"]


def main():
    a = arguments()
    if a.draw:
        page.write(json.loads(a.out.read_text()), a.out)
        return
    check_machine()
    with tempfile.TemporaryDirectory(prefix="accuracy") as tmp:
        tmp = Path(tmp)
        found = clients.find(a, tmp, both_cpus, say)
        result = start_result(a, found)
        with Server(tmp, a.port) as server:
            measure(a, server, found, result, tmp)
    page.write(result, a.out)


def arguments():
    numbers = lambda s: [int(x) for x in s.split(",")]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--levels", type=numbers, default=[1, 10, 100, 300, 1000], help="streams, for prony (default 1,10,100,300,1000)")
    p.add_argument("--rival-levels", type=numbers, default=[1, 100, 1000], help="streams, for the others (default 1,100,1000)")
    p.add_argument("--rival-busy-levels", type=numbers, default=[1, 100], help="the same under pressure (default 1,100)")
    p.add_argument("--conditions", type=lambda s: s.split(","), default=CONDITIONS, help="quiet,busy")
    p.add_argument("--clients", type=lambda s: s.split(","), help="only those with one of these words in their name")
    p.add_argument("--busy", type=int, default=4, help="processes that spin on the client's processor (default 4)")
    p.add_argument("--limit", type=float, default=60, help="seconds that the load of a run may last (default 60)")
    p.add_argument("--minutes", type=float, default=1e6, help="stop after so long; the same command continues")
    p.add_argument("--venv", type=Path, help="folder with a virtual environment, or one for each rival")
    p.add_argument("--install", action="store_true", help="make these environments")
    p.add_argument("--vllm", type=Path, help="the program vllm, where it is elsewhere")
    p.add_argument("--port", type=int, default=0, help="of the server (default: a free one)")
    p.add_argument("--out", type=Path, default=ROOT / "docs/figures/accuracy.json")
    p.add_argument("--again", action="store_true", help="forget what is in --out")
    p.add_argument("--draw", action="store_true", help="measure nothing")
    a = p.parse_args()
    for name in a.conditions:
        if name not in CONDITIONS:
            fail(f"{name} is no condition", "conditions are quiet and busy")
    if a.install and not a.venv:
        fail("--install needs a folder", "add --venv DIR")
    return a


def check_machine():
    if platform.system() != "Linux":
        fail(f"this needs Linux, not {platform.system()}", "the server uses epoll and the kernel's receive stamps; --draw works everywhere")
    if not {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0):
        fail("this needs processors 0 and 1", "one for the server, one for the client")
    for program in ["cc", "taskset", *(["setpriv"] if os.geteuid() == 0 else [])]:
        if not shutil.which(program):
            fail(f"{program} is not installed", "install a C compiler and util-linux")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.sched_setaffinity(0, {SERVER_CPU})  # this script sleeps while a load runs; compilers and installers get both back


def both_cpus(command, **kw):
    return subprocess.run(["taskset", "-c", f"{SERVER_CPU},{CLIENT_CPU}", *command], **kw)


# The server and its truth.

class Server:
    def __init__(self, tmp, port):
        if not port:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
        self.port, self.url, self.program = port, f"http://127.0.0.1:{port}", tmp / "exact"
        subprocess.run(["cc", "-O2", "-o", self.program, ROOT / "scripts/exact/server.c"], check=True)

    def __enter__(self):
        self.process = subprocess.Popen(["taskset", "-c", str(SERVER_CPU), self.program, "-p", str(self.port), "-f", str(TTFT_US), "-i", str(ITL_US)],
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "exact server" not in line:
            fail(f"the server did not start: {line.strip()}", "choose another --port")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def forget(self):
        urllib.request.urlopen(urllib.request.Request(self.url + "/truth", method="DELETE"), timeout=30).read()

    def truth(self):
        """Returns the server's own account of its lateness, and its whole requests in order of arrival."""
        with urllib.request.urlopen(self.url + "/truth", timeout=60) as r:
            head, *rest = [json.loads(line) for line in r]
        rest = [t for t in rest if t["output_tokens"] == clients.TOKENS]  # not what a client asked to learn about the server
        return head["server"]["pace"], sorted(rest, key=lambda t: t["arrival_wall_ns"])

    def connected(self):
        """Tells whether somebody is connected, without disturbing the server."""
        mine = f"0100007F:{self.port:04X}"
        return any(f[1] == mine and f[3] == "01" for f in (line.split() for line in open("/proc/net/tcp")))

    def wakes(self):
        """How often the server woke up. It does so at each write, and once a second when there is nothing to do."""
        return int(next(line for line in open(f"/proc/{self.process.pid}/status") if line.startswith("voluntary")).split()[1])


# The measurement.

def measure(a, server, found, result, tmp):
    tokenizer = clients.make_tokenizer(tmp / "tokenizer")
    done = {key(r) for r in result["runs"]}
    plan = [(repeat, level, condition, c) for repeat in range(a.repeats) for level in sorted({*a.levels, *a.rival_levels, *a.rival_busy_levels})
            for condition in a.conditions for c in (found if repeat % 2 == 0 else found[::-1])
            if level in ((a.rival_busy_levels if condition == "busy" else a.rival_levels) if c.rival else a.levels)]
    began = time.monotonic()
    for i, (repeat, level, condition, client) in enumerate(plan):
        run = {"condition": condition, "client": client.name, "level": level, "repeat": repeat}
        if key(run) in done:
            continue
        if any(level >= r["level"] for r in result["runs"] if key(r)[:2] == key(run)[:2] and r.get("left_out", "").startswith("longer")):
            continue
        if time.monotonic() - began > 60 * a.minutes:
            say(f"{a.minutes:g} minutes are over; the same command continues")
            return
        run |= one_run(a, server, client, level, condition, tmp / "out", tokenizer)
        result["runs"].append(run)
        save(result, a.out)
        words = run.get("left_out") or f"off by {run['error_mean_us']:,.1f} us, p99 {run['error_p99_us']:,.1f} us, {run['requests']} requests"
        say(f"{i + 1}/{len(plan)} {time.monotonic() - began:5.0f} s  {condition:5} {level:5} {client.name:20} {words}  [{run['wall_s']:.1f} s]")


def one_run(a, server, client, level, condition, out, tokenizer):
    """Runs a client once and compares what it reported with the truth."""
    n = max(LEAST_REQUESTS, 2 * level)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    server.forget()
    command = ["taskset", "-c", CLIENT_CPU, *client.command(server.url, level, n, out, tokenizer)]
    began = time.monotonic()
    with open(out / "log", "w") as log:
        process = subprocess.Popen([str(x) for x in command], stdout=log, stderr=log, env=client.env, cwd=out, start_new_session=True)
    busy, failed = [], ""
    try:
        if not wait(process, server.connected, 60, 0.01):  # starting up is no part of the load
            failed = "did not start"
        elif condition == "busy":
            busy = [spin() for _ in range(a.busy)]
        if not failed and not wait(process, idle(server), a.limit, 0.1):
            failed = f"longer than {a.limit:.0f} s"
        stop(busy)
        if not failed and not wait(process, lambda: False, 30, 0.02):
            failed = "did not end"
    finally:
        stop(busy)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what is left of it, children too
        except ProcessLookupError:
            pass
        process.wait()
    run = {"wall_s": round(time.monotonic() - began, 2)}
    if failed:
        return run | {"left_out": failed}
    pace, true = server.truth()
    try:
        reported = client.read(out)
    except (OSError, KeyError, ValueError) as e:
        tail = (out / "log").read_text()[-1500:]
        say(f"{client.name} reported nothing that can be read ({type(e).__name__}: {e}); the end of what it said:\n{tail}")
        return run | {"left_out": "reported nothing"}
    if len(reported) != len(true) or len(true) < 0.95 * n:
        return run | {"left_out": f"reported {len(reported)} requests of {n}, the server knows {len(true)}"}
    run |= compare(reported, true)
    run |= {"server_late": round(pace["late_writes"] / max(1, pace["writes"]), 4)}
    if isinstance(client, clients.Prony):
        run["verdict"] = client.verdict(out)
    return run


def compare(reported, true):
    """Joins what was reported with the truth: by the requests' ids, or where the client sends none by their order."""
    ttft = lambda t: (t["write_wall_ns"][0] - t["arrival_wall_ns"]) / 1e3
    by_id = {t["request_id"]: ttft(t) for t in true}
    values = [v for _, _, v in reported]
    mean = statistics.fmean(values) - statistics.fmean(by_id.values() if len(by_id) == len(true) else map(ttft, true))
    joined = all(i in by_id for i, _, _ in reported)
    if joined:
        errors = [v - by_id[i] for i, _, v in reported]
        p50, p99 = quantile(errors, 50), quantile(errors, 99)
    else:  # the order under load is not sure: the difference of the quantiles
        truth = [ttft(t) for t in true]
        p50, p99 = (quantile(values, q) - quantile(truth, q) for q in (50, 99))
    return {"requests": len(true), "joined": "id" if joined else "quantiles", "reported_mean_us": round(statistics.fmean(values), 2),
            "error_mean_us": round(mean, 2), "error_p50_us": round(p50, 2), "error_p99_us": round(p99, 2)}


def quantile(values, q):
    values = sorted(values)
    k = q / 100 * (len(values) - 1)
    i = int(k)
    return values[i] + (k - i) * (values[min(i + 1, len(values) - 1)] - values[i])


def wait(process, happened, seconds, every):
    """Waits until something happened or the process ended; False when it took too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None or happened():
            return True
        time.sleep(every)
    return False


def idle(server):
    """Tells when the server has had nothing to do for a second: what the client does then is no load any more."""
    seen = [(time.monotonic(), server.wakes())]

    def check():
        now = (time.monotonic(), server.wakes())
        seen[:] = [s for s in seen if s[0] > now[0] - 1.5] + [now]
        return now[0] - seen[0][0] > 1 and now[1] - seen[0][1] <= 5
    return check


def spin():
    """Starts a process that is busy on the client's processor until it is stopped, or this script is gone."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}:\n for _ in range(10**6): pass"
    return subprocess.Popen(["taskset", "-c", str(CLIENT_CPU), sys.executable, "-S", "-c", code])


def stop(processes):
    while processes:
        p = processes.pop()
        p.kill()
        p.wait()


# The file of results.

def start_result(a, found):
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    machine = {"cpu": cpu, "processors": os.cpu_count(), "kernel": "Linux " + ".".join(platform.release().split(".")[:2])}
    conditions = {"machine": machine, "busy": a.busy, "limit_s": a.limit, "ttft_us": TTFT_US, "itl_us": ITL_US, "tokens": clients.TOKENS}
    result = conditions | {"versions": {}, "runs": []}
    if a.out.exists() and not a.again:
        result = json.loads(a.out.read_text())
        changed = [k for k in conditions if result[k] != conditions[k]]
        changed += [c.name for c in found if result["versions"].get(c.name, c.version) != c.version]
        if changed:
            fail(f"{a.out} was measured under other conditions: {', '.join(changed)}", "--again starts anew")
        result["runs"] = [r for r in result["runs"] if "error_mean_us" in r or r["left_out"].startswith("longer")]  # what failed is tried again
    result["versions"] |= {c.name: c.version for c in found}
    return result


def key(run):
    return run["condition"], run["client"], run["level"], run["repeat"]


def save(result, path):
    """Writes the results, a run a line, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in result.items() if k != "runs")
    runs = ",\n".join(json.dumps(r) for r in result["runs"])
    part = path.with_suffix(".part")
    part.write_text(f"{{\n{head},\n\"runs\": [\n{runs}\n]\n}}\n")
    part.replace(path)


def say(words):
    print(words, flush=True)


def fail(cause, hint):
    print(f"error: {cause}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
