"""Draws docs/figures/accuracy.svg and the tables of docs/accuracy.md from the JSON of accuracy.py."""
import math
import statistics
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- what follows is written by scripts/accuracy/accuracy.py -->"
CONDITIONS = {"quiet": "quiet", "busy": "under CPU pressure"}

# How clients look: one colour for prony and one for the others, told apart by marker and dashes.
LOOKS = {
    "prony, wire stamps": ("accent", "disc", ""),
    "prony, socket stamps": ("accent", "square", "6 3"),
    "prony, user stamps": ("accent", "ring", "2 3"),
    "vLLM bench": ("warm", "disc", ""),
    "AIPerf": ("warm", "square", "6 3"),
    "guidellm": ("warm", "ring", "2 3"),
}


def write(result, source):
    """Writes the figure beside the JSON, and for the JSON of docs/ the page."""
    figure = source.with_suffix(".svg")
    figure.write_text(svg(result))
    print("wrote", figure)
    doc = ROOT / "docs/accuracy.md"
    if source.resolve() == ROOT / "docs/figures/accuracy.json":
        head, mark, _ = doc.read_text().partition(MARK)
        if not mark:
            raise SystemExit(f"error: {doc} has lost the line {MARK}\nhint: put it before the tables")
        doc.write_text(head + mark + "\n\n" + tables(result))
        print("wrote", doc)


def series(result, condition, client, value):
    """Returns, for each level, the values of the repeats."""
    out = {}
    for r in result["runs"]:
        if (r["condition"], r["client"]) == (condition, client) and value in r:
            out.setdefault(r["level"], []).append(r[value])
    return dict(sorted(out.items()))


def used(result):
    return [c for c in LOOKS if c in result["versions"]]


def name(result, client):
    return client if client.startswith("prony") else f"{client} {result['versions'][client].partition('+')[0]}"


# The figure.

WIDTH, TOP, HEIGHT, LEFT, GAP, RIGHT = 900, 114, 300, 58, 28, 16
PANEL = (WIDTH - LEFT - GAP - RIGHT) / 2


def svg(result):
    clients = used(result)
    data = {(k, c): series(result, k, c, "error_mean_us") for k in CONDITIONS for c in clients}
    sizes = [max(abs(v), 0.1) for s in data.values() for values in s.values() for v in values] or [1, 1000]
    levels = sorted({level for s in data.values() for level in s}) or [1, 1000]
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    high = max(high, low + 1)
    y = lambda v: TOP + HEIGHT * (high - math.log10(max(abs(v), 0.1))) / (high - low)
    span = max(math.log10(levels[-1] / levels[0]), 0.1)
    body = [text(0, 16, "By how much the reported TTFT is off", "title"),
            text(0, 36, "|reported - true|, mean of a run: median, lowest and highest of the repeats. Less is better.")]
    at = {"accent": 0, "warm": 0}
    for client in clients:  # a row of the legend for each colour
        color, shape, dash = LOOKS[client]
        x0, row = at[color], 54 if color == "accent" else 72
        body += [line(x0, row, x0 + 26, row, f"line {color}", dash), marker(x0 + 13, row, color, shape),
                 text(x0 + 32, row + 4, name(result, client), "strong")]
        at[color] += 180
    for i, (condition, title) in enumerate(CONDITIONS.items()):
        left = LEFT + i * (PANEL + GAP)
        x = lambda level: left + 14 + (PANEL - 28) * math.log10(level / levels[0]) / span
        body.append(text(left, TOP - 10, title, "strong"))
        for decade in range(low, high + 1):
            at_y = y(10.0**decade)
            body.append(line(left, at_y, left + PANEL, at_y, "base" if decade == low else "grid"))
            if i == 0:
                body.append(text(LEFT - 8, at_y + 4, short(10.0**decade), anchor="end"))
        for level in levels:
            body += [line(x(level), TOP + HEIGHT, x(level), TOP + HEIGHT + 4, "base"),
                     text(x(level), TOP + HEIGHT + 18, f"{level:,}", anchor="middle")]
        for k, client in enumerate(clients):
            color, shape, dash = LOOKS[client]
            shift = (k - (len(clients) - 1) / 2) * 3  # so that bars do not cover each other
            points = [(x(level) + shift, statistics.median(values), values, level) for level, values in data[condition, client].items()]
            body.append(path(points, y, color, dash))
            for px, median, values, level in points:
                ends = sorted(y(v) for v in values)
                body.append(line(px, ends[0], px, ends[-1], f"thin {color}"))
                tip = f"{name(result, client)}, {level:,} streams, {title}: {short(median)} ({short(min(values))} .. {short(max(values))})"
                body.append(marker(px, y(median), color, shape, tip))
    body.append(text(WIDTH - RIGHT, TOP + HEIGHT + 38, "streams", anchor="end"))
    style = (ROOT / "internal/plot/style.css").read_text()
    label = "Error of the reported TTFT over the number of streams, quiet and under CPU pressure, on logarithmic axes"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 {WIDTH} {TOP + HEIGHT + 46}" width="{WIDTH}" '
            f'aria-label="{label}"><style>{style}\n.plot .ring{{fill:var(--paper);stroke:var(--c);stroke-width:1.75}}</style>\n'
            + "\n".join(body) + "\n</svg>\n")


def text(x, y, words, kind="", anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind, dash=""):
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>"


def path(points, y, color, dash):
    d = "L".join(f"{px:.1f} {y(median):.1f}" for px, median, _, _ in points)
    return f'<path class="line {color}" d="M{d}"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>" if points else ""


def marker(x, y, color, shape, tip=""):
    tip = f"<title>{escape(tip)}</title>"
    if shape == "square":
        return f'<rect class="bar {color}" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7">{tip}</rect>'
    return f'<circle class="{"bar" if shape == "disc" else "ring"} {color}" cx="{x:.1f}" cy="{y:.1f}" r="4">{tip}</circle>'


# The tables.

def tables(result):
    m, clients = result["machine"], used(result)
    repeats = 1 + max((r["repeat"] for r in result["runs"]), default=0)
    out = [f"Machine: {m['cpu']}, {m['processors']} processors, {m['kernel']}. {repeats} repeat{'s' if repeats > 1 else ''}; under pressure "
           f"{result['busy']} processes spin on the client's processor. prony {result['versions'][clients[0]]}.", ""]
    if repeats < 5:
        out += ["**Provisional: fewer than five repeats, so single disturbed runs show.**", ""]
    late = sum(r.get("server_late", 0) > 0.1 for r in result["runs"])
    if late:
        out += [f"In {late} of {len(result['runs'])} runs more than a tenth of the server's writes were late by more than 200 us: something else ran on its "
                "processor, or it was at its limit. None was taken out.", ""]
    missing = [c for c in LOOKS if c not in clients]
    if missing:
        out += ["Left out, as not to be had here: " + ", ".join(missing) + ".", ""]
    for condition, title in CONDITIONS.items():
        out += table(result, condition, f"### Mean of the error, {title}", "error_mean_us", True)
    for condition, title in CONDITIONS.items():
        out += table(result, condition, f"### p99 of the error, {title}", "error_p99_us", False)
    return "\n".join(out).rstrip() + "\n"


def table(result, condition, title, value, spread):
    """A row a client, a column a level: the median of the repeats; with spread also the lowest, the highest and how many runs were void."""
    levels = sorted({r["level"] for r in result["runs"] if r["condition"] == condition})
    if not levels:
        return []
    rows = [title, "", "| streams | " + " | ".join(f"{n:,}" for n in levels) + " |", "|---" * (len(levels) + 1) + "|"]
    for client in used(result):
        got, cells = series(result, condition, client, value), []
        for level in levels:
            runs = [r for r in result["runs"] if (r["condition"], r["client"], r["level"]) == (condition, client, level)]
            left_out = "; ".join(sorted({r["left_out"] for r in runs if "left_out" in r})) or "-"
            cells.append(cell(got[level], spread, runs) if level in got else left_out)
        rows.append(f"| {name(result, client)} | " + " | ".join(cells) + " |")
    return rows + [""]


def cell(values, spread, runs):
    words = short(statistics.median(values))
    if spread and len(values) > 1:
        words += f" ({short(min(values))} .. {short(max(values))})"
    void = spread and sum(r.get("verdict") == "void" for r in runs)
    return words + (f", void in {void} of {len(runs)}" if void else "")


def short(us):
    """Writes microseconds with a unit that fits, and three digits at most."""
    for size, unit in [(1e6, "s"), (1e3, "ms")]:
        if abs(us) >= size * 0.9995:
            return f"{us / size:.3g} {unit}" if abs(us) < 999.5 * size else f"{us / size:,.0f} {unit}"
    return f"{us:.3g} us"
