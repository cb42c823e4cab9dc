// Package policy holds the rules of this repository that a compiler does not know.
package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/prony-bench/prony/"

// layers are the packages from the lowest to the highest. A package imports only packages of lower layers; within a layer only
// what is written as `a < b`. Do not change this to make a build pass: a new arrow is a decision.
const layers = `
	catalog chat fault memnet opt plot rng stamp stats tap token tty wire
	hub profile
	bench
	client discover dialect metrics schedule sim store telemetry workload
	isolate
	run
	calibrate sweep
	report schema
	builtin cli
`

// within lists the arrows inside a layer: a < b reads "b may import a".
const within = `
	opt < wire
	dialect < dialect/anthropic
	dialect < dialect/llamacpp
	dialect < dialect/lmdeploy
	dialect < dialect/ollama
	dialect < dialect/openai
	dialect < dialect/sglang
	dialect < dialect/tei
	dialect < dialect/tgi
	dialect < dialect/triton
	dialect < dialect/vllm
	builtin < cli
	memnet < client    # its errors are told from those of sockets
`

// testOnly packages serve tests and are imported by nothing else.
var testOnly = map[string]bool{"casetest": true, "dialect/dialecttest": true, "policy": true, "proxytest": true}

func levels(t *testing.T) map[string]int {
	out := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(layers), "\n") {
		for _, name := range strings.Fields(line) {
			out[name] = i
		}
	}
	return out
}

// level returns the layer of a package; a sub-package has that of its parent.
func level(all map[string]int, name string) (int, bool) {
	for {
		if l, ok := all[name]; ok {
			return l, true
		}
		i := strings.LastIndex(name, "/")
		if i < 0 {
			return 0, false
		}
		name = name[:i]
	}
}

// goFiles calls f for each Go file of the repository.
func goFiles(t *testing.T, f func(path, pkg string, file *ast.File, src string)) {
	t.Helper()
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "runs") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(path))
		f(path, filepath.ToSlash(rel), file, string(src))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Imports only go down.
func TestLayers(t *testing.T) {
	all := levels(t)
	allowed := map[string]bool{}
	for _, line := range strings.Split(within, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		for i := 0; i+2 < len(f); i += 3 {
			allowed[f[i]+" < "+f[i+2]] = true
		}
	}
	used := map[string]bool{}
	goFiles(t, func(path, pkg string, file *ast.File, _ string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(pkg, "..") || testOnly[pkg] {
			return
		}
		mine, ok := level(all, pkg)
		if !ok {
			t.Errorf("%s: package %s is in no layer", path, pkg)
			return
		}
		for _, imp := range file.Imports {
			name, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module+"internal/")
			if !ours {
				continue
			}
			if testOnly[name] {
				t.Errorf("%s imports %s, which serves tests", path, name)
			}
			theirs, _ := level(all, name)
			arrow := name + " < " + pkg
			switch {
			case theirs < mine:
			case allowed[arrow]:
				used[arrow] = true
			default:
				t.Errorf("%s: %s (layer %d) imports %s (layer %d)", path, pkg, mine, name, theirs)
			}
		}
	})
	for a := range allowed {
		if !used[a] && !strings.HasPrefix(a, "memnet") {
			t.Errorf("the arrow %s is not used any more", a)
		}
	}
}

// What would make code hard to follow: work at import time, and doors to the process outside cmd.
func TestNoMagic(t *testing.T) {
	goFiles(t, func(path, pkg string, file *ast.File, src string) {
		test := strings.HasSuffix(path, "_test.go")
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				t.Errorf("%s: init()", path)
			}
		}
		for _, imp := range file.Imports {
			if imp.Name != nil && imp.Name.Name == "_" && imp.Path.Value != `"embed"` {
				t.Errorf("%s: blank import of %s", path, imp.Path.Value)
			}
		}
		if !test && strings.Contains(src, "os.Exit(") && !strings.Contains(path, "/cmd/") && !strings.Contains(path, "/scripts/") {
			t.Errorf("%s ends the process", path)
		}
		if !test && regexp.MustCompile(`\blog\.(Print|Fatal|Panic)`).MatchString(src) {
			t.Errorf("%s logs; talk belongs to cli", path)
		}
	})
}

// The simulated engine shares no code with the dialects, so that a misreading cannot cancel out.
func TestSimIsIndependent(t *testing.T) {
	goFiles(t, func(path, pkg string, file *ast.File, _ string) {
		if pkg != "sim" || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, imp := range file.Imports {
			if strings.Contains(imp.Path.Value, "internal/dialect") {
				t.Errorf("%s imports %s", path, imp.Path.Value)
			}
		}
	})
}

// Only client and run read the clock on a request's path; dialects and metrics are pure.
func TestPureHasNoClock(t *testing.T) {
	pure := map[string]bool{"dialect": true, "metrics": true, "stats": true, "schedule": true, "workload": true, "wire": true, "plot": true, "report": true}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Sleep|After|NewTimer|NewTicker|Until)\b`)
	goFiles(t, func(path, pkg string, file *ast.File, src string) {
		if (pure[pkg] || strings.HasPrefix(pkg, "dialect/")) && !strings.HasSuffix(path, "_test.go") && clock.MatchString(src) {
			t.Errorf("%s reads a clock", path)
		}
	})
}

// Every package says what it is.
func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	goFiles(t, func(path, pkg string, file *ast.File, _ string) {
		has[pkg] = has[pkg] || file.Doc != nil && strings.HasPrefix(file.Doc.Text(), "Package ") || strings.HasPrefix(file.Doc.Text(), "Command ")
	})
	for pkg, ok := range has {
		if !ok {
			t.Errorf("package %s has no comment", pkg)
		}
	}
}

// The repository's texts name no machine and no unfinished work.
func TestTexts(t *testing.T) {
	path := regexp.MustCompile(`(^|[^a-zA-Z.])/(work|farm|root|home)/`)
	marker := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "runs") {
			return filepath.SkipDir
		}
		switch filepath.Ext(p) {
		case ".go", ".md", ".sh", ".html", ".css", ".json", ".yaml", ".yml", "":
		default:
			return nil
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil || len(b) > 1<<20 {
			return err
		}
		for i, line := range strings.Split(string(b), "\n") {
			if path.MatchString(line) && !strings.Contains(p, "policy_test") {
				t.Errorf("%s:%d names a path of a machine: %s", p, i+1, line)
			}
			if marker.MatchString(line) && filepath.Ext(p) == ".go" {
				t.Errorf("%s:%d: %s", p, i+1, line)
			}
		}
		return nil
	})
}
