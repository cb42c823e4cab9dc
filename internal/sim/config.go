package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

// Mode is what the server does with a request.
type Mode string

// The modes.
const (
	ModeExact  Mode = "exact"  // given latencies
	ModeEngine Mode = "engine" // a model of continuous batching
	ModeScript Mode = "script" // recorded answers
)

// Config says what a server simulates.
type Config struct {
	Mode Mode
	Seed uint64 // of every draw: latencies, lengths, texts, faults

	Dialect string // whose protocols it speaks, one of Dialects; "" = DefaultDialect

	Model       string // served name; "" = ModelOf the dialect
	MaxModelLen int    // tokens of prompt and answer together; 0 = DefaultModelLen
	APIKey      string // asked for where the engine asks for one; "" = none

	TTFT Law // exact: arrival of the whole request to its first token. Script: to the first event of a file without times
	ITL  Law // exact: between tokens. Script: between the events of a file without times

	// Output is the length that the model would choose, in tokens with the end token; a request's max_tokens bounds it, its
	// min_tokens raise it, and with ignore_eos it does not count. Undefined: max_tokens, or DefaultOutput when a chat gives none.
	Output Law
	// Reasoning is how many tokens of thinking come before the answer, where the endpoint tells of such. They count as output.
	Reasoning int
	// TokensPerChunk is how many tokens a chunk of the stream carries, as vLLM's stream_interval: the first token goes out alone,
	// then one chunk for so many tokens, at the time of the last of them. 0 = 1. Exact mode only.
	TokensPerChunk int

	Engine  EngineConfig // engine mode
	Scripts []Script     // script mode; see LoadScripts

	Faults []Fault // exact and engine mode; see ParseFaults

	// Spin is how long before a due write the pacer polls the clock instead of sleeping; DefaultSpin suits most machines. The
	// pacer keeps one P of the Go scheduler while it has work: raise GOMAXPROCS by one. 0 = plain timers, as virtual time needs.
	Spin time.Duration
	// LateAfter is from which delay on a write counts as late; 0 = DefaultLateAfter.
	LateAfter time.Duration

	TruthRequests int // requests that the truth keeps, the latest; 0 = DefaultTruthRequests
	TruthWrites   int // write times that it keeps over all requests; 0 = DefaultTruthWrites. The oldest requests go first

	MaxBody int64 // bound of a request body in bytes; 0 = DefaultMaxBody
}

// The defaults of Config.
const (
	DefaultModel         = "prony-sim"
	DefaultDialect       = "prony-sim" // vLLM's chat and completions, under a name of its own
	DefaultModelLen      = 32768
	DefaultOutput        = 128
	DefaultSpin          = 80 * time.Microsecond // a sleep ends 20 to 80 us late
	DefaultLateAfter     = 200 * time.Microsecond
	DefaultTruthRequests = 100_000
	DefaultTruthWrites   = 4 << 20 // 28 bytes each: 120 MB at most
	DefaultMaxBody       = 64 << 20
)

// ModelOf is the name of the served model where none is given. DefaultModel tells of the default dialect, as engines may put a model's
// name where others have their own.
func ModelOf(dialect string) string {
	if dialect == "" || dialect == DefaultDialect {
		return DefaultModel
	}
	return "simulated"
}

// Bounds of a configuration: what the arithmetic of offsets and token ids can hold with room to spare.
const (
	maxSpin     = 10 * time.Millisecond
	maxModelLen = 16 << 20
)

// Validate says in one sentence what is wrong with the configuration.
func (c *Config) Validate() error {
	switch c.Mode {
	case ModeExact, ModeEngine, ModeScript:
	default:
		return fault.Usagef("the modes are exact, engine and script", "mode %q is unknown", c.Mode)
	}
	for _, f := range c.Faults {
		if err := f.validate(); err != nil {
			return err
		}
	}
	switch {
	case c.MaxModelLen < 0 || c.MaxModelLen > maxModelLen:
		return fault.Usagef("", "max model length must be between 1 and %d", maxModelLen)
	case c.Dialect != "" && !slices.Contains(Dialects(), c.Dialect):
		return fault.Usagef("the dialects are "+strings.Join(Dialects(), ", "), "dialect %q is unknown", c.Dialect)
	case c.Reasoning < 0 || c.Reasoning > maxModelLen:
		return fault.Usagef("", "reasoning must be between 0 and %d tokens", maxModelLen)
	case c.TokensPerChunk < 0:
		return fault.Usagef("", "tokens per chunk must be above 0")
	case c.TokensPerChunk > 1 && c.Mode != ModeExact:
		return fault.Usagef("in engine mode speculative decoding gives several tokens a chunk", "tokens per chunk belong to exact mode")
	case c.Spin < 0 || c.Spin > maxSpin:
		return fault.Usagef("", "spin must be between 0 and %v", maxSpin)
	case c.LateAfter < 0 || c.TruthRequests < 0 || c.TruthWrites < 0 || c.MaxBody < 0:
		return fault.Usagef("", "limits must not be negative")
	case c.Mode == ModeScript && len(c.Scripts) == 0:
		return fault.Usagef("name a case file, a wire file or a directory of them", "script mode needs a script")
	case c.Mode != ModeScript && len(c.Scripts) > 0:
		return fault.Usagef("", "scripts belong to script mode")
	case c.Mode == ModeScript && len(c.Faults) > 0:
		return fault.Usagef("a script says itself how it fails", "faults belong to exact and engine mode")
	case c.Mode == ModeEngine && (c.TTFT.Defined() || c.ITL.Defined()):
		return fault.Usagef("use exact mode for given latencies", "in engine mode the latencies follow from the model")
	}
	if c.Mode == ModeEngine {
		if _, err := c.Engine.resolve(c.modelLen()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) modelLen() int {
	if c.MaxModelLen == 0 {
		return DefaultModelLen
	}
	return c.MaxModelLen
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	c.MaxModelLen = c.modelLen()
	if c.Dialect == "" {
		c.Dialect = DefaultDialect
	}
	if c.Model == "" {
		c.Model = ModelOf(c.Dialect)
	}
	if c.TokensPerChunk == 0 {
		c.TokensPerChunk = 1
	}
	if c.LateAfter == 0 {
		c.LateAfter = DefaultLateAfter
	}
	if c.TruthRequests == 0 {
		c.TruthRequests = DefaultTruthRequests
	}
	if c.TruthWrites == 0 {
		c.TruthWrites = DefaultTruthWrites
	}
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	return c
}
