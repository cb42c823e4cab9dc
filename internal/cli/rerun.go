package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// besideManifest are the flags that may be given with a manifest: they say where and what of, and change nothing that is sent.
var besideManifest = []string{"file", "url", "api-key", "auth", "header", "cacert", "cert", "key", "insecure", "proxy", "out", "label", "metadata", "wait-ready",
	"json", "quiet", "dry-run", "print-spec"}

// readManifest returns the spec of a run, to be carried out once more.
func (f *runFlags) readManifest(path string, text []byte) (*bench.Spec, error) {
	var m bench.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "--file "+path, "is it the whole manifest.json of a run?")
	}
	s := m.Spec
	if len(s.Target.URLs) == 0 || len(s.Measured()) == 0 {
		return nil, fault.New(fault.Usage, "--file "+path+" holds no spec", "is it the whole manifest.json of a run?")
	}
	var other string
	f.set.Visit(func(fl *pflag.Flag) {
		if !slices.Contains(besideManifest, fl.Name) && other == "" {
			other = fl.Name
		}
	})
	if other != "" {
		return nil, fault.Usagef("leave it out; for other conditions write a spec: `prony run ... --print-spec`", "--%s would change the run that %s repeats", other, path)
	}
	if bytes.Contains(s.Target.ExtraBody, []byte("REDACTED")) {
		return nil, fault.New(fault.Usage, "--file "+path+": --extra-body held a secret, which is not stored", "give the run's own flags again")
	}
	fields, err := parseHeaders(f.access.headers)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Target.Headers {
		if !slices.ContainsFunc(fields, func(h wire.Field) bool { return strings.EqualFold(h.Name, name) }) {
			return nil, fault.Usagef("such as --header "+name+":VALUE", "--file %s: the run sent the header %s, whose value is not stored", path, name)
		}
	}
	if len(f.urls) > 0 {
		if len(f.urls) != len(s.Target.URLs) {
			return nil, fault.Usagef("requests go round robin over as many", "the run of %s had %d targets, and not %d", path, len(s.Target.URLs), len(f.urls))
		}
		s.Target.URLs = f.urls
	}
	if err := f.access.check(s.Target.URLs, f.given); err != nil {
		return nil, err
	}
	if !f.given("auth") {
		f.access.auth = s.Target.Auth
	}
	if f.given("label") {
		s.Label = f.label
	}
	if s.Metadata, err = mergedMetadata(s.Metadata, f.metadata); err != nil {
		return nil, err
	}
	f.engine = s.Target.Engine
	w := &s.Workload
	w.Probes, w.ProbeTokensIn, w.ProbeTokensOut, w.Rows = 0, 0, 0, nil
	s.Client.Proxy, s.SeedGiven = "", true
	return &s, nil
}

func mergedMetadata(of map[string]string, args []string) (map[string]string, error) {
	more, err := parseMetadata(args)
	if len(more) == 0 {
		return of, err
	}
	out := map[string]string{}
	for _, m := range []map[string]string{of, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out, err
}
