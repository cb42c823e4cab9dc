// Command ladder runs prony at a ladder of concurrencies against several servers and draws their curves as figures for docs/.
//
//	go run ./scripts/ladder -prony ./prony -out docs/figures/simulated-engine -levels 1,2,4,8,16,32 "simulated=http://127.0.0.1:8001" "vLLM=http://127.0.0.1:9200"
//
// Each curve is relative to itself, so that servers of different speed can be looked at together: output throughput to its highest
// value, TTFT to its median at the lowest level.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// point is what one level gave.
type point struct {
	level      int
	throughput float64
	p50, p99   float64
}

func main() {
	prony := flag.String("prony", "prony", "binary to run")
	out := flag.String("out", "ladder", "prefix of the figures")
	levels := flag.String("levels", "1,2,4,8,16,32,64", "concurrencies")
	each := flag.Int("each", 4, "requests a level, as a multiple of it (at least 16)")
	isl := flag.String("isl", "64", "input tokens")
	osl := flag.String("osl", "32", "output tokens")
	flag.Parse()
	var through, ttft []plot.Series
	for i, arg := range flag.Args() {
		name, url, ok := strings.Cut(arg, "=")
		if !ok {
			fail(fmt.Errorf("%q is not name=url", arg))
		}
		var points []point
		for _, l := range strings.Split(*levels, ",") {
			n, err := strconv.Atoi(l)
			fail(err)
			p, err := measure(*prony, url, n, max(16, n**each), *isl, *osl)
			fail(err)
			fmt.Printf("%-12s concurrency %4d: %8.1f tok/s, TTFT p50 %9.2f ms, p99 %9.2f ms\n", name, n, p.throughput, p.p50, p.p99)
			points = append(points, p)
		}
		color := []plot.Color{plot.Accent, plot.Warm, plot.Quiet}[i%3]
		best, base := 0.0, points[0].p50
		for _, p := range points {
			best = max(best, p.throughput)
		}
		a, b := plot.Series{Name: name, Form: plot.Line, Color: color}, plot.Series{Name: name, Form: plot.Line, Color: color}
		for _, p := range points {
			a.Points = append(a.Points, plot.Point{X: float64(p.level), Y: 100 * p.throughput / best})
			b.Points = append(b.Points, plot.Point{X: float64(p.level), Y: p.p50 / base})
		}
		through, ttft = append(through, a), append(ttft, b)
	}
	x := plot.Axis{Label: "concurrency", Unit: "requests", Log: true, Whole: true}
	write(*out+"-throughput.svg", &plot.Chart{Title: "Throughput saturates", Alt: "output throughput over concurrency, in per cent of the highest",
		X: x, Y: plot.Axis{Label: "output throughput", Unit: "% of the highest"}, Series: through})
	write(*out+"-ttft.svg", &plot.Chart{Title: "TTFT explodes beyond capacity", Alt: "median TTFT over concurrency, as a multiple of its value at the lowest",
		X: x, Y: plot.Axis{Label: "median TTFT", Unit: "x that at the lowest concurrency", Log: true}, Series: ttft})
}

func measure(prony, url string, level, n int, isl, osl string) (point, error) {
	dir, err := os.MkdirTemp("", "ladder")
	if err != nil {
		return point{}, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(prony, "run", "--url", url, "--concurrency", strconv.Itoa(level), "--num-requests", strconv.Itoa(n), "--isl", isl, "--osl", osl,
		"--out", filepath.Join(dir, "run"), "--json", "--quiet")
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return point{}, fmt.Errorf("concurrency %d: %w", level, err)
	}
	var s bench.Summary
	if err := json.Unmarshal(b, &s); err != nil {
		return point{}, err
	}
	p := point{level: level}
	p.throughput, _ = s.Metrics.Value("output_throughput")
	if v, ok := s.Steady.OutputThroughput.Get(); ok {
		p.throughput = v // without the ramp and the tail of a short run
	}
	p.p50, _ = s.Metrics.Dist("ttft_ms").P(50)
	p.p99, _ = s.Metrics.Dist("ttft_ms").P(99)
	return p, nil
}

func write(path string, f plot.Figure) {
	fail(os.MkdirAll(filepath.Dir(path), 0o777))
	fail(os.WriteFile(path, []byte(plot.File(f, 640)), 0o644))
	fmt.Println("wrote", path)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ladder:", err)
		os.Exit(1)
	}
}
