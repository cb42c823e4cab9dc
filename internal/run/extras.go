package run

import (
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// refuseExtras refuses what the endpoint cannot be asked for. What an OpenAI API that is not known by name lets be forced about the
// length is not known, so it may be tried there.
func (p *Plan) refuseExtras() error {
	s, can, name := &p.Spec, p.Endpoint.Can, p.Engine.Name()
	unknown, generates := name == "openai", p.Endpoint.Task == bench.Generate
	for _, x := range []struct {
		asked, can bool
		flag       string
		cannot     string
	}{
		{s.Sampling.IgnoreEOS, can.IgnoreEOS || unknown, "--ignore-eos", "cannot be told to ignore its end token"},
		{s.Sampling.MinTokens > 0, can.MinTokens || unknown, "--min-tokens", "takes no least number of tokens"},
		{s.Target.TokenIDs, can.IDsOut, "--token-ids", "cannot be asked for token ids"},
		{s.Target.EventUsage, can.EventUsage, "--continuous-usage", "cannot be asked to count in each event"},
		{s.Target.Priority != nil, can.Priority, "--priority", "takes no priority"},
		{len(s.Target.Tools) > 0, generates, "--tools", "calls no tools"},
		{len(s.Target.ResponseFormat) > 0, generates, "--response-format and --json-schema", "gives no text"},
	} {
		if x.asked && !x.can {
			return fault.New(fault.Usage, fmt.Sprintf("%s's endpoint %s %s", name, p.Endpoint.Name, x.cannot),
				"leave "+x.flag+" out; if the server is another engine, name it with --engine")
		}
	}
	return nil
}
