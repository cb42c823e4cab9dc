package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/schema"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/tty"
)

// model makes the report of a result.
func model(res *run.Result) *report.Model {
	return report.New(res.Manifest, res.Summary, res.Records, res.Dir.Path)
}

// writeReports writes report.html and report.md into the run directory.
func (a *app) writeReports(res *run.Result) error {
	m := model(res)
	var errs []error
	for name, r := range map[string]report.Renderer{store.HTMLFile: report.HTML{}, store.MarkdownFile: report.Markdown{}} {
		var b bytes.Buffer
		if err := r.Render(&b, m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		errs = append(errs, res.Dir.WriteFile(name, b.Bytes()))
	}
	return errors.Join(errs...)
}

// printResult prints a result on stdout.
func (a *app) printResult(res *run.Result, j *runJob) error {
	if j.json {
		return report.JSON{}.Render(a.Stdout, model(res))
	}
	next := j.next
	if next == "" {
		next = nextCommand(res)
	}
	return a.textRenderer(j.definitions, next).Render(a.Stdout, model(res))
}

func (a *app) textRenderer(definitions bool, next string) report.Renderer {
	return report.Text{Width: tty.Width(a.Stdout), Color: tty.Color(a.Stdout, a.Getenv), Definitions: definitions, Next: next}
}

// nextCommand names the command that is worth trying after a result.
func nextCommand(res *run.Result) string {
	m, s := res.Manifest, res.Summary
	url := "--url " + m.Spec.Target.URLs[0]
	load := m.Spec.Phases[len(m.Spec.Phases)-1].Load
	if res.Unusable != nil || s.Requests.OK == 0 {
		return "prony probe " + m.Spec.Target.URLs[0]
	}
	if rps, ok := s.Metrics.Value("request_throughput"); ok && load.Shape == bench.Closed && m.Spec.Target.Stream {
		// a rate that this server can surely hold
		return fmt.Sprintf("prony run %s --request-rate %s --num-requests %d", url, twoDigits(0.7*rps), max(100, m.Planned))
	}
	return "prony report " + res.Dir.Path + " --format html --out report.html"
}

// twoDigits rounds to two significant digits, without an exponent.
func twoDigits(v float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return strconv.FormatFloat(math.Round(v/unit)*unit, 'f', max(0, -int(math.Floor(math.Log10(unit)))), 64)
}

// renderers are the words for --format.
func (a *app) renderers() catalog.Catalog[report.Renderer] {
	return catalog.New[report.Renderer](a.textRenderer(true, ""), report.HTML{}, report.Markdown{}, report.CSV{}, report.JSON{})
}

func (a *app) reportCommand() *cobra.Command {
	var format, out string
	var refold bool
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Compute the results of a run directory again, and show them",
		Long: `report reads manifest and journal of a run directory, computes every result again and writes summary.json, requests.parquet,
report.html and report.md. It works on the directory of a run that was killed, too: what had ended by then is in the journal.

With --refold it decodes the kept transcripts again (--keep-transcripts) in place of reading the journal.`,
		Example: `  prony report runs/2026-11-29T15-20-01Z-qwen3
  prony report runs/2026-11-29T15-20-01Z-qwen3 --format md
  prony report runs/2026-11-29T15-20-01Z-qwen3 --format csv --out result.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := a.renderers().Get(format)
			if err != nil {
				return fault.Wrap(fault.Usage, err, "--format", "")
			}
			res, err := reopen(args[0], refold)
			if err != nil {
				return err
			}
			if err := errors.Join(res.Conclude(), a.writeReports(res)); err != nil {
				return run.FirstFault(err)
			}
			if out == "" {
				return r.Render(a.Stdout, model(res))
			}
			return renderTo(out, r, model(res))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, html, md, csv or json")
	cmd.Flags().StringVar(&out, "out", "", "file to write to, in place of stdout")
	cmd.Flags().BoolVar(&refold, "refold", false, "decode the kept transcripts again")
	return cmd
}

// reopen reads a run directory.
func reopen(path string, refold bool) (*run.Result, error) {
	dir, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := dir.Manifest()
	if err != nil {
		return nil, err
	}
	res := &run.Result{Dir: dir, Manifest: m}
	if refold {
		d, err := builtin.Dialects().Get(m.Spec.Target.Engine)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "engine of the run", "")
		}
		for _, ep := range d.Endpoints() {
			if ep.Name == m.Spec.Target.Endpoint {
				res.Records, err = run.Refold(dir, m, d, ep)
				return res, err
			}
		}
		return nil, fault.Usagef("", "%s has no endpoint %q", d.Name(), m.Spec.Target.Endpoint)
	}
	for r, err := range dir.Records() {
		if err != nil {
			return nil, err
		}
		res.Records = append(res.Records, r)
	}
	return res, nil
}

// renderTo writes a report to a file.
func renderTo(path string, r report.Renderer, m *report.Model) error {
	var b bytes.Buffer
	if err := r.Render(&b, m); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fault.Wrap(fault.Usage, err, "--out", "")
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fault.Wrap(fault.Internal, err, "--out", "is the disk full?")
	}
	return nil
}

func (a *app) schemaCommand() *cobra.Command {
	names := schema.All().Names()
	return &cobra.Command{
		Use:       "schema [" + strings.Join(names, "|") + "]",
		Short:     "Print the JSON Schemas of journal, manifest and summary",
		Long:      "schema prints the JSON Schema of one file of a run directory, or of all, one after the other.",
		Example:   "  prony schema journal\n  prony schema summary > summary.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			all := schema.All()
			if len(args) == 1 {
				s, err := all.Get(args[0])
				if err != nil {
					return fault.Wrap(fault.Usage, err, "schema", "")
				}
				_, err = io.Copy(a.Stdout, bytes.NewReader(s.JSON))
				return err
			}
			for _, s := range all.All() {
				if _, err := a.Stdout.Write(s.JSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
