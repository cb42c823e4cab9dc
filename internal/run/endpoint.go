package run

import (
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
)

func (p *Plan) chooseEndpoint() error {
	t := &p.Spec.Target
	want := t.Endpoint
	if strings.HasPrefix(want, "/") {
		// a path of the user's own: what is spoken there follows from its end
		var ends []string
		for _, ep := range p.Engine.Endpoints() {
			if ends = append(ends, strings.TrimPrefix(ep.Path, "/v1")); spokenAt(want, ep.Path) {
				p.Endpoint = ep
				p.Endpoint.Path = want
				t.Endpoint, t.Path = ep.Name, want
				return nil
			}
		}
		return fault.New(fault.Usage, fmt.Sprintf("it is not clear what is spoken at %s", want), "the path must end in one of "+strings.Join(ends, ", ")+"; put a prefix into --url")
	}
	if want == "" && len(p.found) > 0 && p.found[0].Name == p.Engine.Name() {
		want = p.found[0].Endpoint // where this server lacks the engine's first
	}
	var names []string
	for _, ep := range p.Engine.Endpoints() {
		if ep.Name == want || want == "" {
			p.Endpoint = ep
			t.Endpoint = ep.Name
			if t.Path != "" { // a spec that was resolved before
				p.Endpoint.Path = t.Path
			}
			return nil
		}
		names = append(names, ep.Name)
	}
	return fault.New(fault.Usage, fmt.Sprintf("%s has no endpoint %q%s", p.Engine.Name(), want, catalog.DidYouMean(want, names)), "there are: "+strings.Join(names, ", ")+", or a path")
}

// spokenAt tells whether a path ends as that of an endpoint, whatever model it names, and whether it is of a stream or not.
func spokenAt(path, of string) bool {
	path, of = strings.TrimSuffix(path, "_stream"), strings.TrimSuffix(strings.TrimPrefix(of, "/v1"), "_stream")
	before, after, named := strings.Cut(of, "{model}")
	if !named {
		return strings.HasSuffix(path, of)
	}
	_, rest, found := strings.Cut(path, before)
	model, ends := strings.CutSuffix(rest, after)
	return found && ends && model != "" && !strings.Contains(model, "/")
}

// besides takes /v1 from the end of the base URLs when the endpoint's own path is beside it, and not below.
func (p *Plan) besides() {
	if own := p.Spec.Target.Path == ""; own && !strings.HasPrefix(p.Endpoint.Path, "/v1/") {
		for i := range p.Targets {
			p.Targets[i] = p.Targets[i].Beside()
		}
	}
}

// tryOut finds out whether the endpoint takes such requests at all: what it refuses of all of them, it refuses before one is sent.
func (p *Plan) tryOut() error {
	if p.Endpoint.Task != bench.Generate {
		return nil
	}
	_, err := p.Endpoint.Codec.Encode(p.Endpoint, &bench.Request{Prompt: "a", OSL: 1}, &p.Options)
	if err != nil && p.Endpoint.Can.IDsIn {
		_, err = p.Endpoint.Codec.Encode(p.Endpoint, &bench.Request{Tokens: []int{lowID}, OSL: 1}, &p.Options)
	}
	return err
}
