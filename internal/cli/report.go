package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/sweep"
)

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
report.html and report.md. It works on the directory of a run that was killed, too: what had ended by then is in the journal. Where
the directory may not be written to, the results are shown and the exit code is 1.

Of the directory of a sweep it shows the curve, and writes its report.html and report.md.

With --refold it decodes the kept transcripts again (--keep-transcripts) in place of reading the journal.`,
		Example: `  prony report runs/2026-11-29T15-20-01Z-qwen3
  prony report runs/2026-11-29T15-20-01Z-qwen3 --format md
  prony report runs/2026-11-29T15-20-01Z-qwen3 --format csv --out result.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.renderers().Get(format)
			if err != nil {
				return fault.Wrap(fault.Usage, err, "--format", "text is what a run prints")
			}
			if sweep.Is(args[0]) {
				return a.reportSweep(args[0], r, out)
			}
			res, err := a.reopen(cmd.Context(), args[0], refold)
			if err != nil {
				return err
			}
			failed := errors.Join(res.Conclude(), a.writeReports(res)) // the result is shown all the same
			if out == "" {
				err = r.Render(a.Stdout, written(res))
			} else {
				err = renderTo(out, r, model(res))
			}
			return run.FirstFault(errors.Join(failed, err))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, html, md, csv or json")
	cmd.Flags().StringVar(&out, "out", "", "file to write to, in place of stdout")
	cmd.Flags().BoolVar(&refold, "refold", false, "decode the kept transcripts again")
	return cmd
}

// reopen reads a run directory.
func (a *app) reopen(ctx context.Context, path string, refold bool) (*run.Result, error) {
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
		d, err := builtin.Engines().Get(m.Spec.Target.Engine)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "engine of the run", "a later version made this directory; without --refold its journal is read")
		}
		ep, ok := d.Endpoint(m.Spec.Target.Endpoint)
		if !ok {
			return nil, fault.Usagef("", "%s has no endpoint %q", d.Name(), m.Spec.Target.Endpoint)
		}
		count, err := a.counterOf(ctx, &m.Spec)
		if err != nil {
			return nil, err
		}
		res.Records, err = run.Refold(dir, m, ep, count)
		return res, err
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
		return fault.Wrap(fault.Usage, err, "--out", "give the path of a file that may be written")
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return fault.Wrap(fault.Internal, err, "--out", "the disk is full")
		}
		return fault.Wrap(fault.Usage, err, "--out", "give the path of a file that may be written")
	}
	return nil
}
