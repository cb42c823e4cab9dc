package sim

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

func TestValidate(t *testing.T) {
	good := Config{Mode: ModeExact}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	engine := func(e EngineConfig) Config { return Config{Mode: ModeEngine, Engine: e} }
	faulty := func(f Fault) Config { return Config{Mode: ModeExact, Faults: []Fault{f}} }
	for name, c := range map[string]Config{
		"mode":          {},
		"spin":          {Mode: ModeExact, Spin: time.Second},
		"length":        {Mode: ModeExact, MaxModelLen: -1},
		"limits":        {Mode: ModeExact, TruthWrites: -1},
		"fault":         faulty(Fault{Kind: "flood"}),
		"share":         faulty(Fault{Kind: FaultCut, Share: 2}),
		"status":        faulty(Fault{Kind: FaultFail, Status: 404}),
		"drip":          faulty(Fault{Kind: FaultDrip}),
		"no script":     {Mode: ModeScript},
		"scripts":       {Mode: ModeExact, Scripts: []Script{{}}},
		"script faults": {Mode: ModeScript, Scripts: []Script{{}}, Faults: []Fault{{Kind: FaultCut}}},
		"latency":       {Mode: ModeEngine, TTFT: Fixed(1)},
		"chunks":        {Mode: ModeEngine, TokensPerChunk: 2},
		"preset":        engine(EngineConfig{Preset: "x"}),
		"both":          engine(EngineConfig{Preset: DefaultPreset, Cost: &Cost{}}),
		"KV":            {Mode: ModeEngine, MaxModelLen: 1 << 20, Engine: EngineConfig{Cost: &Cost{}}},
		"budget":        engine(EngineConfig{MaxNumSeqs: 100, MaxBatchedTokens: 50}),
		"draft":         engine(EngineConfig{Draft: 1000}),
		"acceptance":    engine(EngineConfig{Acceptance: 1.5}),
	} {
		if err := c.Validate(); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(c); err == nil {
			t.Errorf("%s: a server", name)
		}
	}
}
