package dialecttest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Following CONTRIBUTING's recipe for a new dialect, step by step in a copy of the repository, gives an engine that can be chosen by
// name, passes the suite, folds its golden stream and keeps to the layers.
func TestRecipe(t *testing.T) {
	recipe := section(t, "../../../CONTRIBUTING.md", "## A new dialect")
	repo := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "internal", "testdata/wire"} {
		copyAll(t, filepath.Join("../../..", part), filepath.Join(repo, part))
	}
	at := func(name string) string { return filepath.Join(repo, strings.ReplaceAll(name, "NAME", "say")) }
	put := func(name, from string) {
		b, err := os.ReadFile(filepath.Join("testdata/recipe", from))
		check(t, err)
		check(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		check(t, os.WriteFile(at(name), b, 0o644))
	}
	before := func(name, place, line string) { // puts a line before the first one that holds a place
		b, err := os.ReadFile(at(name))
		check(t, err)
		i := strings.Index(string(b), place)
		if i < 0 {
			t.Fatalf("%s: no %q", name, place)
		}
		i = strings.LastIndexByte(string(b[:i]), '\n') + 1
		check(t, os.WriteFile(at(name), []byte(string(b[:i])+strings.ReplaceAll(line, "NAME", "say")+"\n"+string(b[i:])), 0o644))
	}
	for i, step := range []struct {
		says []string // what the recipe says in this step
		do   func()
	}{
		{[]string{"`internal/dialect/NAME/NAME.go`", "`dialect.Codec`"}, func() { put("internal/dialect/NAME/NAME.go", "say.go") }},
		{[]string{"`internal/dialect/NAME/NAME_test.go`", "`dialecttest.Conform`", "`dialecttest.Golden`"}, func() { put("internal/dialect/NAME/NAME_test.go", "say_test.go") }},
		{[]string{"`testdata/wire`", "`manifest.json`"}, func() {
			put("testdata/wire/say.ndjson", "say.ndjson")
			addRow(t, at("testdata/wire/manifest.json"))
		}},
		{[]string{"`dialect < dialect/NAME`", "`internal/policy`"}, func() {
			before("internal/policy/policy_test.go", "dialect < dialect/openai", "\tdialect < dialect/NAME")
		}},
		{[]string{"`builtin.Engines()`"}, func() {
			before("internal/builtin/builtin.go", `/internal/workload"`, "\t\"github.com/prony-bench/prony/internal/dialect/NAME\"")
			before("internal/builtin/builtin.go", `dialect.NewEngine("openai"`, "\t\tdialect.NewEngine(\"NAME\", say.SayEndpoint()),")
		}},
	} {
		text, _, _ := strings.Cut(recipe, "\n"+strconv.Itoa(i+2)+". ")
		_, text, ok := strings.Cut(text, "\n"+strconv.Itoa(i+1)+". ")
		for _, s := range step.says {
			if !ok || !strings.Contains(text, s) {
				t.Errorf("step %d of the recipe does not say %s:\n%s", i+1, s, text)
			}
		}
		step.do()
	}
	if strings.Contains(recipe, "\n6. ") {
		t.Error("the recipe has a step that is not tested")
	}
	check(t, os.WriteFile(at("internal/builtin/say_test.go"), []byte(chosen), 0o644))
	c := exec.Command("go", "test", "-run", "TestConform|TestGoldenStreams|TestLayers|TestChosen", "./internal/dialect/say", "./internal/policy", "./internal/builtin")
	c.Dir = repo
	c.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	out, err := c.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok  \t") != 3 || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, out)
	}
}

// chosen is a test that the engine has a name.
const chosen = `package builtin

import "testing"

func TestChosen(t *testing.T) {
	e, err := Engines().Get("say")
	if err != nil || len(e.Endpoints()) != 1 {
		t.Fatal(err, e)
	}
}
`

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// section returns a section of a document, without its heading.
func section(t *testing.T, file, heading string) string {
	b, err := os.ReadFile(file)
	check(t, err)
	_, text, ok := strings.Cut(string(b), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// addRow adds the golden stream to a manifest.
func addRow(t *testing.T, manifest string) {
	var rows []json.RawMessage
	b, err := os.ReadFile(manifest)
	check(t, err)
	check(t, json.Unmarshal(b, &rows))
	row, err := os.ReadFile("testdata/recipe/row.json")
	check(t, err)
	b, err = json.Marshal(append(rows, row))
	check(t, err)
	check(t, os.WriteFile(manifest, b, 0o644))
}

// copyAll copies a file or a folder, without the test data of packages.
func copyAll(t *testing.T, from, to string) {
	check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || d.Name() == "recorded" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	}))
}
