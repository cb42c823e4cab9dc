// Package workload turns a data set and the laws of its lengths into a seeded sequence of requests.
//
// It is pure: no clock, no network. The same spec and seed give the same requests, on every machine.
package workload

import (
	"iter"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
)

// Dataset is a kind of requests.
type Dataset interface {
	// Name is the word for --dataset.
	Name() string
	// Open checks the configuration and returns the requests of a phase. They go on without end; an error ends them.
	Open(c Config) (iter.Seq2[bench.Request, error], error)
}

// Inventor is a data set that makes prompts of wanted lengths: it needs a Maker, and its output lengths are forced where the server can.
type Inventor interface {
	Invents()
}

// OwnLengths is a data set whose requests say how long their answers are to be, where no law is given.
type OwnLengths interface {
	OwnLengths()
}

// Timed is a data set whose requests have times of their own.
type Timed interface {
	// Times returns the moments of the requests in the order of the requests, ascending, the first at 0.
	Times(c Config) (iter.Seq[time.Duration], error)
}

// Config is what a data set is opened with.
type Config struct {
	Spec  bench.Workload
	Phase string // bench.Warmup gives requests that the measured phase does not have
	Seed  uint64
	Maker Maker // makes prompts of a wanted length, for data sets that invent them

	Rows  *bench.Rows           // gets what was found in the file; nil = nobody asks
	Skip  int                   // of a trace: requests at its begin that are passed over, without making their prompts
	Count func(text string) int // tokens of a text, where a tokenizer is there; nil = an estimate
	Cache *Cache                // of what was read from files; nil = they are read anew

	// What the endpoint takes, as far as it is known: requests that it cannot take are refused. Both false: not known yet.
	Chat bool // messages, or a text that becomes one
	Text bool // a text, or token ids
	Task opt.Of[bench.Task]
}

// inputs tells whether the endpoint embeds or ranks, and generates nothing.
func (c Config) inputs() bool { return c.Task.Or(bench.Generate) != bench.Generate }

// stream returns the random numbers of a phase.
func (c Config) stream() *rng.Stream { return rng.New(c.Seed, c.stretch("workload")) }

// stretch names the random numbers of a purpose in a phase, so that no two phases send the same prompts.
func (c Config) stretch(purpose string) string {
	if c.Phase == "" || c.Phase == bench.Measure {
		return purpose
	}
	return purpose + "/" + c.Phase
}

// offset is the number of the phase's first prompt. The warm-up counts from the same one, the other way.
func (c Config) offset() int { return c.Maker.Offset(c.prefixStream()) }

func (c Config) prefixStream() *rng.Stream {
	name := "workload/prefix"
	if c.Phase != bench.Warmup {
		name = c.stretch(name)
	}
	return rng.New(c.Seed, name)
}
