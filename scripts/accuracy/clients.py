"""The clients that accuracy.py compares: how each is found, installed and called, and where it writes the TTFT of each request."""
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 100  # of each answer
MODEL = "exact"
RIVALS = {"vllm": "vLLM bench", "aiperf": "AIPerf", "guidellm": "guidellm"}  # program and package: name


class Client:
    def __init__(self, name, version, program, env):
        self.name, self.version, self.program, self.env = name, version, program, env
        self.rival = True


class Prony(Client):
    def __init__(self, stamps, version, program, env):
        super().__init__(f"prony, {stamps} stamps", version, program, env)
        self.stamps, self.rival = stamps, False
        # Wire stamps need CAP_NET_RAW. The other two get what an ordinary user gets, and the rivals too: no priority over other processes.
        self.plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if stamps != "wire" and os.geteuid() == 0 else []

    def command(self, url, level, n, out, tokenizer):
        return [*self.plain, self.program, "run", "--url", url, "--engine", "openai", "--model", MODEL, "--prompt", "hi", "--osl", TOKENS,
                "--concurrency", level, "--num-requests", n, "--stamps", self.stamps, "--request-id", "acc", "--out", out / "run", "--quiet"]

    def read(self, out):
        got = [json.loads(line) for line in (out / "run/requests.jsonl").open()]
        return [(f"acc-{r['id']}", r["sent_ns"], (r["first_ns"] - r["sent_ns"]) / 1e3) for r in got if r["outcome"] == "ok"]

    def verdict(self, out):
        return json.loads((out / "run/summary.json").read_text())["verdict"]


class VLLM(Client):
    def command(self, url, level, n, out, tokenizer):
        return [self.program, "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--base-url", url, "--model", MODEL,
                "--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", 8, "--random-output-len", TOKENS, "--num-prompts", n,
                "--max-concurrency", level, "--ready-check-timeout-sec", 0, "--request-id-prefix", "acc-", "--disable-tqdm", "--save-result",
                "--save-detailed", "--result-dir", out, "--result-filename", "result.json"]

    def read(self, out):
        r = json.loads((out / "result.json").read_text())
        return [(f"acc-{i}", start, ttft * 1e6) for i, (start, ttft, error) in enumerate(zip(r["start_times"], r["ttfts"], r["errors"])) if not error]


class AIPerf(Client):
    def command(self, url, level, n, out, tokenizer):
        return [self.program, "profile", "--model", MODEL, "--tokenizer", tokenizer, "--url", url, "--endpoint-type", "chat", "--streaming",
                "--concurrency", level, "--request-count", n, "--prompt-input-tokens-mean", 8, "--prompt-output-tokens-mean", TOKENS,
                "--prompt-output-tokens-stddev", 0, "--extra-inputs", "ignore_eos:true", "--use-server-token-count", "--export-level", "records",
                "--output-artifact-dir", out]

    def read(self, out):
        got = [json.loads(line) for line in (out / "profile_export.jsonl").open()]
        return [(r["metadata"]["x_request_id"], r["metadata"]["request_start_ns"], r["metrics"]["time_to_first_token"]["value"] * 1e3)
                for r in got if not r.get("error")]


class GuideLLM(Client):
    def command(self, url, level, n, out, tokenizer):
        return [self.program, "run", "--backend", f"kind=openai_http,target={url},model={MODEL},validate_backend=false", "--profile",
                f"kind=concurrent,streams={level}", "--constraint", f"kind=max_requests,count={n}", "--data",
                f"kind=synthetic_text,prompt_tokens=8,output_tokens={TOKENS}", "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
                "--output", f"kind=json,path={out / 'result.json'}", "--disable-console"]

    def read(self, out):  # it sends no ids
        got = json.loads((out / "result.json").read_text())["benchmarks"][0]["requests"]["successful"]
        return [(None, r["request_start_time"], r["time_to_first_token_ms"] * 1e3) for r in got]


def find(a, tmp, both_cpus, say):
    """Returns the clients that can be run here, and says which cannot. Compiling and installing may use both processors."""
    env = dict(os.environ, XDG_STATE_HOME=str(tmp), DO_NOT_TRACK="1", HF_HUB_DISABLE_TELEMETRY="1", VLLM_NO_USAGE_STATS="1", NO_COLOR="1")
    program = os.environ.get("PRONY")
    if not program:
        program = tmp / "prony"
        both_cpus(["go", "build", "-o", program, "./cmd/prony"], cwd=ROOT, check=True)
    program = Path(program).absolute()
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    clients = [Prony(s, version, program, env) for s in ["wire", "socket", "user"]]
    if a.install:
        install([p for p in RIVALS if not (p == "vllm" and a.vllm)], a.venv, both_cpus, say)
    # guidellm gets one worker, as it gets one processor: its ten would need half a minute to start and stand in each other's way.
    makers = {"vllm": (VLLM, {}), "aiperf": (AIPerf, {}),
              "guidellm": (GuideLLM, {"GUIDELLM__MAX_WORKER_PROCESSES": "1", "GUIDELLM__MP_CONTEXT_TYPE": "forkserver"})}
    for package, name in RIVALS.items():
        places = [a.venv / package / "bin" / package, a.venv / "bin" / package] if a.venv else []
        if package == "vllm" and a.vllm:
            places = [a.vllm]
        found = next((p.absolute() for p in places if p.exists()), None)
        if not found:
            say(f"{name} is left out: " + (f"there is none at {places[0]}" if places else "see --venv"))
            continue
        ask = f"import importlib.metadata as m; print(m.version({package!r}))"
        got = subprocess.run([found.parent / "python", "-c", ask], capture_output=True, text=True)
        if got.returncode:
            say(f"{name} is left out: the environment of {found} has no package {package}")
            continue
        make, more = makers[package]
        clients.append(make(name, got.stdout.strip(), found, env | more))
    return [c for c in clients if not a.clients or any(w.lower() in c.name.lower() for w in a.clients)]


def install(packages, folder, both_cpus, say):
    """Makes an environment for each rival, as their requirements do not agree. One that fails is said and skipped."""
    for package in packages:
        if (folder / package / "bin" / package).exists():
            continue
        say(f"installing {package} into {folder / package}")
        ok = both_cpus([sys.executable, "-m", "venv", folder / package]).returncode == 0
        ok = ok and both_cpus([folder / package / "bin/pip", "install", "--quiet", package]).returncode == 0
        if not ok:
            say(f"{package} cannot be installed here")


def make_tokenizer(folder):
    """Writes a tokenizer of one token a character, for rivals that want one: no network, and cheap, so that it does not slow them."""
    folder.mkdir()
    special = ["<unk>", "<s>", "</s>"]
    vocab = {t: i for i, t in enumerate(special + ["Ġ", "Ċ"] + [chr(c) for c in range(33, 127)])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, t in enumerate(special)]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
        "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 100_000,
        "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}))
    return folder
