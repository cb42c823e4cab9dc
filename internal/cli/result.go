package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// written makes the report of a result whose files were to be written: those that are not there, as on a full disk, are not named.
func written(res *run.Result) *report.Model {
	m := model(res)
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(name string) bool {
		_, err := os.Stat(filepath.Join(res.Dir.Path, name))
		return err != nil
	})
	return m
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
	next := j.next
	if next == "" {
		next = nextCommand(res)
	}
	var r report.Renderer = a.textRenderer(j.definitions, next)
	if j.json {
		r = report.JSON{}
	}
	if err := r.Render(a.Stdout, written(res)); err != nil {
		return fault.Wrap(fault.Internal, err, "the result cannot be printed", "it is kept in "+res.Dir.Path)
	}
	return nil
}

func (a *app) textRenderer(definitions bool, next string) report.Renderer {
	return report.Text{Width: tty.Width(a.Stdout), Color: tty.Color(a.Stdout, a.Getenv), Definitions: definitions, Next: next}
}

func (a *app) schemaCommand() *cobra.Command {
	names := schema.All().Names()
	return &cobra.Command{
		Use:       "schema [" + strings.Join(names, "|") + "]",
		Short:     "Print the JSON Schemas of journal, manifest, summary and curve",
		Long:      "schema prints the JSON Schema of one file of a run directory, or of sweep.json (curve), or of all, one after the other.",
		Example:   "  prony schema journal\n  prony schema summary > summary.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			all := schema.All()
			if len(args) == 1 {
				s, err := all.Get(args[0])
				if err != nil {
					return fault.Wrap(fault.Usage, err, "schema", "without a name all of them are printed")
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
