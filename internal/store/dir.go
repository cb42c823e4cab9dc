// Package store keeps run directories: the manifest, the append-only journal, the summary and the Parquet file.
//
// The files are the API. A run directory of any version stays readable: the schema version is checked first, fields that are not
// known are ignored.
package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Names of the files of a run directory.
const (
	ManifestFile    = "manifest.json"
	JournalFile     = "requests.jsonl"
	ParquetFile     = "requests.parquet"
	SummaryFile     = "summary.json"
	TranscriptsFile = "transcripts.jsonl"
	HTMLFile        = "report.html"
	MarkdownFile    = "report.md"
)

// damaged says what is left when a manifest cannot be read.
const damaged = "was it edited, or cut off? " + JournalFile + " beside it still has every request; a copy of the directory may be whole"

// Dir is a run directory.
type Dir struct{ Path string }

// DefaultPath names a run directory by its time and label.
func DefaultPath(at time.Time, label string) string {
	name := at.UTC().Format("2006-01-02T15-04-05Z")
	if clean := cleanLabel(label); clean != "" {
		name += "-" + clean
	}
	return filepath.Join("runs", name)
}

// cleanLabel makes a label fit for a file name.
func cleanLabel(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
		if b.Len() >= 60 {
			break
		}
	}
	return strings.Trim(b.String(), "-.")
}

// Create makes a new run directory. An existing one is refused, unless it is empty.
func Create(path string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "run directory", "give another --out")
	}
	err := os.Mkdir(path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		entries, rerr := os.ReadDir(path)
		if rerr != nil || len(entries) > 0 {
			return nil, exists(path)
		}
		err = nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "run directory", "give another --out")
	}
	return &Dir{path}, nil
}

// Free refuses, before anything is measured, a path that Create would refuse. It leaves nothing behind.
func Free(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) { // the nearest that is there
			st, err := os.Stat(dir)
			switch {
			case err == nil && !st.IsDir():
				return fault.New(fault.Usage, fmt.Sprintf("run directory: %s is no directory", dir), "give another --out")
			case err == nil && !writable(dir):
				return fault.New(fault.Usage, fmt.Sprintf("run directory: %s may not be written to", dir), "give another --out")
			case err == nil || dir == filepath.Dir(dir):
				return nil
			case !errors.Is(err, fs.ErrNotExist):
				return fault.Wrap(fault.Usage, err, "run directory", "give another --out")
			}
		}
	case err != nil:
		return fault.Wrap(fault.Usage, err, "run directory", "give another --out")
	case len(entries) > 0:
		return exists(path)
	}
	return nil
}

// writable tries whether a directory can be made in another.
func writable(dir string) bool {
	path, err := os.MkdirTemp(dir, ".prony-")
	if err == nil {
		err = os.Remove(path)
	}
	return err == nil
}

func exists(path string) error {
	return fault.New(fault.Usage, fmt.Sprintf("%s exists already", path), "a run is never overwritten: give another --out, or leave it out")
}

// Open checks that a path is a run directory.
func Open(path string) (*Dir, error) {
	st, err := os.Stat(filepath.Join(path, ManifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Usage, fmt.Sprintf("%s is no run directory: it has no %s", path, ManifestFile), "give the directory that `prony run` named at its end")
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fault.New(fault.Usage, path+" is a file, and no run directory", "give the directory that `prony run` named at its end: "+filepath.Dir(path)+"?")
	case err != nil:
		return nil, fault.Wrap(fault.Usage, err, "run directory", "give the directory that `prony run` named at its end")
	case st.IsDir():
		return nil, fault.New(fault.Usage, fmt.Sprintf("%s is no run directory: its %s is a directory", path, ManifestFile), "give the directory that `prony run` named at its end")
	}
	return &Dir{path}, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.Path, name) }

// WriteManifest writes the manifest, replacing an earlier one in one step.
func (d *Dir) WriteManifest(m *bench.Manifest) error {
	return d.writeJSON(ManifestFile, m)
}

// Manifest reads the manifest. One of which no result can be made is an error that says what lacks.
func (d *Dir) Manifest() (*bench.Manifest, error) {
	var m bench.Manifest
	if err := d.readJSON(ManifestFile, &m); err != nil {
		return nil, err
	}
	if err := checkSchema(ManifestFile, m.Schema, bench.ManifestSchema); err != nil {
		return nil, err
	}
	if err := checkSchema(ManifestFile, m.Journal, bench.JournalSchema); err != nil {
		return nil, err
	}
	if err := checkManifest(&m); err != nil {
		return nil, fault.Wrap(fault.Usage, err, d.file(ManifestFile)+" is damaged", damaged)
	}
	return &m, nil
}

// WriteSummary writes the summary, replacing an earlier one in one step.
func (d *Dir) WriteSummary(s *bench.Summary) error { return d.writeJSON(SummaryFile, s) }

// Summary reads the summary.
func (d *Dir) Summary() (*bench.Summary, error) {
	var s bench.Summary
	if err := d.readJSON(SummaryFile, &s); err != nil {
		return nil, err
	}
	return &s, checkSchema(SummaryFile, s.Schema, bench.SummarySchema)
}

// WriteFile writes a file of the directory in one step.
func (d *Dir) WriteFile(name string, content []byte) error {
	return d.writeVia(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// writeVia lets write fill a file that takes its name when it is whole.
func (d *Dir) writeVia(name string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(d.Path, "."+name+".*")
	if err != nil {
		return diskFault(err, name)
	}
	buf := bufio.NewWriterSize(tmp, 1<<20)
	err = write(buf)
	for _, step := range []func() error{buf.Flush, tmp.Sync, func() error { return tmp.Chmod(0o644) }} {
		if err == nil {
			err = step()
		}
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), d.file(name))
	}
	if err != nil {
		os.Remove(tmp.Name())
		return diskFault(err, name)
	}
	return nil
}

func (d *Dir) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return d.WriteFile(name, append(b, '\n'))
}

func (d *Dir) readJSON(name string, v any) error {
	b, err := os.ReadFile(d.file(name))
	if err != nil {
		return fault.Wrap(fault.Usage, err, "read "+name, "give the directory that `prony run` named at its end, and see that it may be read")
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fault.Wrap(fault.Usage, err, d.file(name)+" is damaged", damaged)
	}
	return nil
}

// checkSchema takes any version of the same family up to the present one.
func checkSchema(file, have, present string) error {
	family, version, _ := strings.Cut(have, "/")
	wantFamily, newest, _ := strings.Cut(present, "/")
	if family != wantFamily || version == "" {
		return fault.New(fault.Usage, fmt.Sprintf("%s has the schema %q, not %q", file, have, wantFamily), "is it a file of prony?")
	}
	if len(version) > len(newest) || len(version) == len(newest) && version > newest {
		return fault.New(fault.Usage, fmt.Sprintf("%s is of version %s, newer than this prony (%s)", file, version, newest), "use a newer prony")
	}
	return nil
}

// diskFault says that a file could not be written, and what may help.
func diskFault(err error, name string) error {
	hint := "what was measured before is kept"
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		hint = "the disk is full: " + hint
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		hint = "the run directory may not be written to: its files are as they were"
	}
	return fault.Wrap(fault.Internal, err, "write "+name, hint)
}
