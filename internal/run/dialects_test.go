package run

import (
	"context"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/sim"
)

// Every endpoint of every engine against the simulated engine that speaks it, streaming and not: all requests succeed, and the counts and
// the TTFT are those of the server.
func TestEveryEndpoint(t *testing.T) {
	for _, engine := range builtin.Engines().All() {
		for _, ep := range engine.Endpoints() {
			for _, stream := range []bool{true, false} {
				if stream && (ep.Task != bench.Generate || ep.Name == "infer") { // they answer in one piece
					continue
				}
				name := engine.Name() + "/" + ep.Name + "/plain"
				if stream {
					name = engine.Name() + "/" + ep.Name + "/stream"
				}
				t.Run(name, func(t *testing.T) { speaksWith(t, engine, ep, stream) })
			}
		}
	}
}

func speaksWith(t *testing.T, engine dialect.Engine, ep dialect.Endpoint, stream bool) {
	const out = 8
	cfg := exact(100*ms, 20*ms)
	cfg.Dialect = engine.Name()
	virtual(t, cfg, func(w *world) {
		w.spec.Target.Engine, w.spec.Target.Endpoint, w.spec.Target.Stream = engine.Name(), ep.Name, stream
		w.spec.Phases[0].Stop.Requests = 3
		res := w.do()
		truth := w.srv.Truth()
		truth = truth[len(truth)-len(res.Records):] // what came before asked how long prompts are
		for i, r := range res.Records {
			sent := r.Sent.Or(0)
			switch {
			case r.Outcome != bench.OK:
				w.t.Errorf("%s: %s", r.Outcome, r.Error)
			case r.ISL.Or(-1) != truth[i].Prompt:
				w.t.Errorf("ISL %d by %s, the server had %d", r.ISL.Or(-1), r.ISLSource, truth[i].Prompt)
			case ep.Task == bench.Generate && (truth[i].Output != out || r.OSL.Or(-1) != out):
				w.t.Errorf("OSL %d by %s, the server wrote %d", r.OSL.Or(-1), r.OSLSource, truth[i].Output)
			case stream && r.First.Or(0)-sent != 100*ms:
				w.t.Errorf("TTFT %v", r.First.Or(0)-sent)
			case stream && r.Last.Or(0)-sent != 100*ms+(out-1)*20*ms:
				w.t.Errorf("last output after %v", r.Last.Or(0)-sent)
			case ep.Task != bench.Generate && r.Last.Or(0)-sent != 100*ms:
				w.t.Errorf("latency %v", r.Last.Or(0)-sent)
			default:
				continue
			}
			return
		}
	})
}

// Each simulated engine is found for what it speaks.
func TestAutoFindsEngine(t *testing.T) {
	for _, engine := range builtin.Engines().All() {
		t.Run(engine.Name(), func(t *testing.T) {
			virtual(t, sim.Config{Mode: sim.ModeExact, Dialect: engine.Name()}, func(w *world) {
				first := engine.Endpoints()[0]
				w.spec.Target.Engine, w.spec.Target.Endpoint, w.spec.Target.Stream = "auto", first.Name, first.Task == bench.Generate
				plan, err := Prepare(context.Background(), w.spec, w.deps, false)
				if err != nil {
					w.t.Fatal(err)
				}
				if found := plan.Engine.Name(); found != engine.Name() {
					w.t.Errorf("auto finds %q", found)
				}
			})
		})
	}
}

// Where a prompt must be token ids there is no estimate to fall back to: a probe that cannot be read is the target's fault.
func TestUnreadableProbe(t *testing.T) {
	faults, err := sim.ParseFaults("malformed:1")
	if err != nil {
		t.Fatal(err)
	}
	virtual(t, sim.Config{Mode: sim.ModeExact, Dialect: "vllm", TTFT: sim.Fixed(100 * ms), ITL: sim.Fixed(20 * ms), Faults: faults}, func(w *world) {
		w.spec.Target.Engine, w.spec.Target.Endpoint = "vllm", "generate"
		if _, err := Prepare(context.Background(), w.spec, w.deps, false); fault.CodeOf(err) != fault.Target {
			w.t.Errorf("%v, code %v", err, fault.CodeOf(err))
		}
	})
}
