package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/calibrate"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
)

// calibration is a calibration as the command asks for it.
type calibration struct {
	quick, json bool
	stamps, out string
	levels      string
}

func (a *app) calibrateCommand() *cobra.Command {
	var c calibration
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the error and the ceiling of this client on this machine",
		Long: `calibrate starts the simulated engine's exact mode in a process of its own, which keeps the truth of its writes, climbs 1 to 1,000 streams
and 10 to 5,000 requests/s, and prints by how much TTFT and ITL are off, and up to which load. It takes some 45 s, with --quick 10 s. Every
run on this machine with the same stamps then has the result in its manifest, and is void above 80 % of an exact ceiling.

TTFT is reported minus true: first event - sent, against first write - arrival at the server's socket. A positive error contains the
way through the kernel, which takes some microseconds. ITL is that of each gap. Means have a sign, p50 and p99 are of the magnitude.
A level passes when all its requests are ok, TTFT is off by less than 1 ms at p99 and ITL by less than 0.1 % at the mean, 99 % of the
rate was sent, and less than 1 ms late at p99. Where the server itself wrote late (server_limited) it was the limit, and the client's
ceiling is at least so high. The exit code is 5 when no level passes.`,
		Example: `  prony calibrate
  prony calibrate --quick
  prony calibrate --stamps socket
  prony calibrate --levels 1000x4000,2000x8000,5000/sx10000
  prony calibrate --json --out here.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.calibrate(cmd.Context(), &c) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&c.quick, "quick", false, "fewer levels: 10 s")
	f.StringVar(&c.stamps, "stamps", "auto", "grade of the stamps to calibrate: wire, socket, user, or auto: the best there is")
	f.StringVar(&c.out, "out", "", "file to keep it in; runs read the default one only: prony/calibration.json below XDG_STATE_HOME or ~/.local/state")
	f.BoolVar(&c.json, "json", false, "print JSON")
	f.StringVar(&c.levels, "levels", "", "other levels, such as 1x3,20x40,100/sx200: streams or rate, x requests")
	return cmd
}

func (a *app) calibrate(ctx context.Context, c *calibration) error {
	levels := calibrate.Full
	if c.quick {
		levels = calibrate.Quick
	}
	if c.levels != "" {
		var err error
		if levels, err = parseLevels(c.levels); err != nil {
			return err
		}
	}
	if err := oneOf("stamps", c.stamps, stampGrades); err != nil {
		return err
	}
	path := c.out
	if path == "" {
		var err error
		if path, err = calibrate.Path(a.Getenv); err != nil {
			return err
		}
	}
	tuneRuntime()
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	args := []string{"sim", "--listen", "127.0.0.1:0", "--ttft", calibrate.TTFT.String(), "--itl", calibrate.ITL.String(), "--until-stdin-closes"}
	server, mine := splitCPUs()
	if server != "" {
		args = append(args, "--cpu-list", server)
	}
	url, end, err := a.startSim(ctx, args)
	if err != nil {
		return err
	}
	defer end()
	pinned := server != "" && pin(mine) == nil
	deps := run.Deps{Engines: builtin.Engines(), Datasets: builtin.Datasets(), Spin: client.DefaultSpin, Version: a.Version}
	say := func(l bench.CalibrationLevel) { a.say(levelLine(l)) }
	result, err := calibrate.Run(ctx, calibrate.Config{URL: url, Stamps: c.stamps, Levels: levels, Pinned: pinned, Deps: deps, Each: say})
	if err != nil {
		return err
	}
	if err := calibrate.Store(path, result); err != nil {
		return err
	}
	if c.json {
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(result)
	} else {
		_, err = fmt.Fprint(a.Stdout, calibrationText(result, path, c.out == ""))
	}
	if err == nil && result.Ceiling.EventRate == 0 {
		err = fault.New(fault.Void, "no level passed: the client cannot measure here", "end what else takes the processors, and calibrate again")
	}
	return err
}

// parseLevels reads levels: streams or rate, x requests.
func parseLevels(s string) ([]calibrate.Level, error) {
	var out []calibrate.Level
	for _, part := range strings.Split(s, ",") {
		load, n, ok := strings.Cut(strings.TrimSpace(part), "x")
		var l calibrate.Level
		var err, err2 error
		if rate, isRate := strings.CutSuffix(load, "/s"); isRate {
			l.Rate, err = strconv.ParseFloat(rate, 64)
		} else {
			l.Streams, err = strconv.Atoi(load)
		}
		l.Requests, err2 = strconv.Atoi(n)
		if !ok || err != nil || err2 != nil || l.Requests < 1 || l.Streams < 1 && !(l.Rate > 0 && l.Rate <= 1e5) || l.Streams > 1e5 {
			return nil, fault.Usagef("such as --levels 1x3,20x40,100/sx200: streams or rate, x requests", "--levels: %q is no level", part)
		}
		out = append(out, l)
	}
	return out, nil
}

// calibrations returns how a run finds the calibration of its machine. One that cannot be read is none, which the run says.
func (a *app) calibrations() func(bench.Host, bench.ClientReport) (*bench.Calibration, string) {
	path, err := calibrate.Path(a.Getenv)
	if err != nil {
		return nil
	}
	return func(h bench.Host, r bench.ClientReport) (*bench.Calibration, string) {
		all, err := calibrate.Load(path)
		if err != nil {
			a.say(fmt.Sprintf("the calibration in %s cannot be read (%v); `prony calibrate` makes a new one", path, err))
			return nil, "the one that is stored cannot be read"
		}
		return calibrate.Of(all, calibrate.MachineOf(h), r)
	}
}
