#!/usr/bin/env python3
"""Hold prony's counts against a real engine's own counters.

    scripts/check-engine.py vllm|llamacpp|none URL [flags of `prony run` ...]

Reads the engine's Prometheus page before and after one run, and prints the tokens that prony counted beside the difference of the
engine's counters; for vLLM also the mean TTFT of its histogram. PRONY names the binary (default: prony on the path). The server
must serve nobody else meanwhile.
"""
import json, os, re, subprocess, sys, tempfile, urllib.request


def page(url):
    out = {}
    try:
        text = urllib.request.urlopen(url + "/metrics", timeout=10).read().decode()
    except Exception:
        return out
    for line in text.splitlines():
        m = re.match(r"([a-zA-Z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)$", line)
        if m:
            out[m.group(1)] = out.get(m.group(1), 0) + float(m.group(2))
    return out


def main():
    engine, url, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    prony = os.environ.get("PRONY", "prony")
    with tempfile.TemporaryDirectory() as tmp:
        run = tmp + "/run"
        cmd = [prony, "run", "--url", url, "--out", run, "--quiet", "--json"] + flags
        before = page(url)
        done = subprocess.run(cmd, capture_output=True, text=True)
        after = page(url)
        print("exit", done.returncode, done.stderr.strip())
        summary = json.loads(done.stdout)
        manifest = json.load(open(run + "/manifest.json"))
        records = [json.loads(line) for line in open(run + "/requests.jsonl")]
    ok = [r for r in records if r["outcome"] == "ok"]
    isl, osl = sum(r.get("isl", 0) for r in ok), sum(r.get("osl", 0) for r in ok)
    delta = lambda name: after.get(name, 0) - before.get(name, 0)
    work = manifest["spec"]["workload"]
    probes, probe_in, probe_out = (work.get(k, 0) for k in ("probes", "probe_input_tokens", "probe_output_tokens"))
    if probes:
        print(f"before the run {probes} probes of the prompt length: {probe_in} tokens in, {probe_out} out, counted by the engine too")
    print("prompts by", work.get("prompt_source", "-"))
    equal = lambda mine, theirs: f"prony {mine}, engine {theirs:.0f}: {'equal' if mine == theirs else 'DIFFERS'}"
    print("outcomes", summary["requests"]["by_outcome"], "verdict", summary["verdict"])
    dev = summary["tokens"]
    print("input length: asked", dev["isl_asked_mean"], "deviation mean", dev["isl_deviation_mean"], "worst", dev["isl_deviation_worst"])
    if engine == "vllm":
        print("input  tokens:", equal(isl, delta("vllm:prompt_tokens_total") - probe_in))
        print("output tokens:", equal(osl, delta("vllm:generation_tokens_total") - probe_out))
        n = delta("vllm:time_to_first_token_seconds_count")
        if n:
            theirs = delta("vllm:time_to_first_token_seconds_sum") / n * 1000
            ours = summary["metrics"]["ttft_ms"]["mean"]
            bound = 5 + 0.1 * theirs
            print(f"mean TTFT: prony {ours:.2f} ms, engine {theirs:.2f} ms over {n:.0f} requests, difference {ours - theirs:+.2f} ms (bound {bound:.2f}): {'agrees' if abs(ours - theirs) <= bound else 'DIFFERS'}")
    elif engine == "llamacpp":
        theirs = delta("llamacpp:prompt_tokens_total") + delta("llamacpp:prompt_tokens_cached_total")
        print("input  tokens:", equal(isl, theirs - probe_in))
        print("output tokens:", equal(osl, delta("llamacpp:tokens_predicted_total") - probe_out))
    else:
        print(f"input tokens: prony {isl}; output tokens: prony {osl}; the engine has no counters")


main()
