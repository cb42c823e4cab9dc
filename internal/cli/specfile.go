package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
)

// mostSpec bounds a spec file.
const mostSpec = 64 << 20

// mostPhases bounds its phases.
const mostPhases = 1000

// specFile is what a file for -f says: flags by their names, and a list of phases.
type specFile struct {
	path  string
	given map[string]bool // flags of the command line, which win
	nodes *yaml.Node      // of the phases, as they were written; nil = there are none
}

// readSpec reads a file of -f. A manifest is returned as the spec that it holds; a YAML file sets the flags that it names.
func (f *runFlags) readSpec(path string) (*bench.Spec, error) {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Size() > mostSpec) {
		err = errors.New("it is a directory, or larger than any spec")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "--file "+path, "a spec in YAML, or the manifest.json of a run")
	}
	if head := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head[:min(len(head), 200)], []byte(`"prony.manifest/`)) {
		return f.readManifest(path, text)
	}
	return nil, f.readYAML(path, text)
}

// readYAML sets the flags that a spec names, except those of the command line, and reads its phases.
func (f *runFlags) readYAML(path string, text []byte) error {
	file := &specFile{path: path, given: map[string]bool{}}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fault.Wrap(fault.Usage, err, "--file "+path, "each flag is a key: `concurrency: 8`; `prony run ... --print-spec` writes a spec")
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return fault.New(fault.Usage, "--file "+path+" holds no keys", "each flag is a key: `concurrency: 8`; `prony run ... --print-spec` writes a spec")
	}
	f.set.Visit(func(fl *pflag.Flag) { file.given[fl.Name] = true })
	if err := f.apply(file, doc.Content[0], []string{"phases"}, func(key string, value *yaml.Node) error {
		file.nodes = value
		return nil
	}); err != nil {
		return err
	}
	f.file = file
	return nil
}

// keys are the flags that a spec may name.
func keys() *pflag.FlagSet {
	var f runFlags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(set)
	return set
}

// apply sets flags from the keys of a mapping; own takes the keys that are none.
func (f *runFlags) apply(file *specFile, node *yaml.Node, extra []string, own func(key string, value *yaml.Node) error) error {
	known := keys()
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.ReplaceAll(strings.ToLower(key.Value), "_", "-")
		name = string(normalizeFlag(nil, name))
		bad := func(hint, format string, args ...any) error {
			return fault.Usagef(hint, "%s line %d: %s", file.path, key.Line, fmt.Sprintf(format, args...))
		}
		if seen[name] {
			return bad("give it once", "%s is there twice", key.Value)
		}
		seen[name] = true
		if slices.Contains(extra, name) {
			if err := own(name, value); err != nil {
				return err
			}
			continue
		}
		if known.Lookup(name) == nil {
			words := slices.Clone(extra)
			known.VisitAll(func(fl *pflag.Flag) { words = append(words, fl.Name) })
			return bad("keys are the flags of `prony run`", "unknown key %s%s", key.Value, catalog.DidYouMean(name, words))
		}
		if name == "api-key" {
			return bad("give it with --api-key or in the environment", "%s is a secret, which a file that is kept should not hold", key.Value)
		}
		if file.given[name] {
			continue // the command line wins
		}
		values, err := valuesOf(value)
		if err != nil {
			return bad("such as "+name+": 8", "%s: %v", key.Value, err)
		}
		for _, v := range values {
			if err := f.set.Set(name, v); err != nil {
				return bad("see `prony run --help`", "%s: %s", key.Value, plainWords(err.Error()))
			}
		}
	}
	return nil
}

// valuesOf returns a key's value as a flag takes it: a list one by one, a mapping as JSON.
func valuesOf(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, errors.New("it has no value")
		}
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		var out []string
		for _, c := range n.Content {
			v, err := valuesOf(c)
			if err != nil {
				return nil, err
			}
			out = append(out, v...)
		}
		return out, nil
	case yaml.MappingNode:
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		b, err := json.Marshal(v)
		return []string{string(b)}, err
	}
	return nil, errors.New("it is no value")
}

// Keys of a phase: what a phase says of these replaces all that is said of them for the whole run.
var (
	loadKeys = []string{"concurrency", "request-rate", "burstiness", "arrivals", "max-concurrency", "timestamps", "speedup", "trace-from", "trace-to", "trace-offset",
		"think", "users", "pace", "prefill-concurrency", "cancel-rate", "cancel-after"}
	stopKeys = []string{"num-requests", "duration"}
	// notOfPhases are flags of the whole run.
	notOfPhases = []string{"warmup-requests", "warmup-duration"}
)

// phasesOf reads the phases of a spec. Each has the run's load, end and workload, except for what it says itself.
func (f *runFlags) phasesOf(file *specFile) ([]bench.Phase, error) {
	if file.nodes.Kind != yaml.SequenceNode || len(file.nodes.Content) == 0 || len(file.nodes.Content) > mostPhases {
		return nil, fault.Usagef("phases: [{name: warmup, num-requests: 20}, {duration: 60s}]", "%s line %d: phases is no list of 1 to %d", file.path, file.nodes.Line, mostPhases)
	}
	var out []bench.Phase
	names := map[string]bool{}
	whole, err := f.workload()
	if err != nil {
		return nil, err
	}
	for i, n := range file.nodes.Content {
		bad := func(hint, format string, args ...any) error {
			return fault.Usagef(hint, "%s line %d: %s", file.path, n.Line, fmt.Sprintf(format, args...))
		}
		if n.Kind != yaml.MappingNode {
			return nil, bad("such as {name: low, request-rate: 5, duration: 60s}", "a phase has keys")
		}
		ph, err := f.phaseOf(file, n, whole)
		if err != nil {
			return nil, err
		}
		if ph.Name == "" {
			if ph.Name = bench.Measure; len(file.nodes.Content) > 1 {
				ph.Name = fmt.Sprintf("phase-%d", i+1)
			}
		}
		switch {
		case strings.ContainsFunc(ph.Name, func(r rune) bool { return r <= ' ' || r == '/' || r > '~' }) || len(ph.Name) > 60:
			return nil, bad("letters, digits and signs", "the name %q", ph.Name)
		case names[ph.Name]:
			return nil, bad("each phase has a name of its own", "the phase %s is there twice", ph.Name)
		case ph.Warm() && i > 0:
			return nil, bad("put it first", "the warm-up comes after a phase that is measured")
		}
		names[ph.Name] = true
		out = append(out, ph)
	}
	if len(out) == 1 && out[0].Warm() {
		return nil, fault.New(fault.Usage, file.path+" has a warm-up and nothing that is measured", "add a phase")
	}
	return out, nil
}

// phaseOf reads one phase.
func (f *runFlags) phaseOf(file *specFile, n *yaml.Node, whole bench.Workload) (bench.Phase, error) {
	var g runFlags
	g.register(pflag.NewFlagSet("phase", pflag.ContinueOnError))
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		own[string(normalizeFlag(nil, strings.ReplaceAll(strings.ToLower(n.Content[i].Value), "_", "-")))] = true
	}
	replaced := map[string]bool{}
	for _, group := range [][]string{loadKeys, stopKeys} {
		if slices.ContainsFunc(group, func(k string) bool { return own[k] }) {
			for _, k := range group {
				replaced[k] = true
			}
		}
	}
	var err error
	f.set.Visit(func(fl *pflag.Flag) {
		if err == nil && !own[fl.Name] && !replaced[fl.Name] && !slices.Contains(notOfPhases, fl.Name) && g.set.Lookup(fl.Name) != nil {
			err = g.copyFlag(fl)
		}
	})
	if err != nil {
		return bench.Phase{}, err
	}
	name := ""
	// what the command line says of a phase's own keys is about the run, and not about each phase
	if err := g.apply(&specFile{path: file.path}, n, []string{"name"}, func(_ string, v *yaml.Node) error {
		name = v.Value
		return nil
	}); err != nil {
		return bench.Phase{}, err
	}
	for _, x := range append(slices.Clone(exclusiveShapes), [3]string{"num-requests", "duration", "a phase ends after a number of requests or after a time"}) {
		if err := g.exclude(x[0], x[1], x[2]); err != nil {
			return bench.Phase{}, err
		}
	}
	if err := g.check(); err != nil {
		return bench.Phase{}, err
	}
	load, err := g.load()
	if err != nil {
		return bench.Phase{}, err
	}
	phases, err := g.phases(load)
	if err != nil {
		return bench.Phase{}, err
	}
	ph := phases[len(phases)-1]
	ph.Name = name
	work, err := g.workload()
	if err != nil {
		return ph, err
	}
	if a, _ := json.Marshal(work); !bytes.Equal(a, mustJSON(whole)) {
		ph.Workload = &work
	}
	return ph, nil
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cli: a spec does not marshal: " + err.Error())
	}
	return b
}

// copyFlag gives a flag the value that it has in another set.
func (f *runFlags) copyFlag(from *pflag.Flag) error {
	for _, v := range flagValues(from) {
		if err := f.set.Set(from.Name, v); err != nil {
			return err
		}
	}
	return nil
}

// flagValues are the values of a flag, each as it is written.
func flagValues(fl *pflag.Flag) []string {
	if s, ok := fl.Value.(pflag.SliceValue); ok {
		return s.GetSlice()
	}
	return []string{fl.Value.String()}
}

// writeSpec writes the flags that were given as a spec. Secrets are left out.
func (f *runFlags) writeSpec(seed uint64) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	put := func(key string, v *yaml.Node) {
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, v)
	}
	scalar := func(fl *pflag.Flag, v string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: v}
		if t := fl.Value.Type(); strings.HasPrefix(t, "string") {
			n.SetString(v)
		}
		return n
	}
	known := keys()
	known.SortFlags = false
	known.VisitAll(func(k *pflag.Flag) {
		fl := f.set.Lookup(k.Name)
		switch {
		case fl == nil || !fl.Changed || k.Name == "out" || slices.Contains(secretFlags, "--"+k.Name) && k.Name != "extra-body":
			return
		case k.Name == "extra-body" && !bytes.Equal([]byte(redacted("--extra-body", f.extraBody)), []byte(f.extraBody)):
			return
		}
		values := flagValues(fl)
		if _, list := fl.Value.(pflag.SliceValue); !list {
			put(k.Name, scalar(fl, values[0]))
			return
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range values {
			n.Content = append(n.Content, scalar(fl, v))
		}
		put(k.Name, n)
	})
	if !f.given("seed") {
		put("seed", &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(seed)})
	}
	if f.file != nil && f.file.nodes != nil {
		put("phases", f.file.nodes)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the spec cannot be written", "")
	}
	return b.Bytes(), enc.Close()
}
