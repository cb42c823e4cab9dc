//go:build !linux

package client

import (
	"context"

	"github.com/prony-bench/prony/internal/bench"
)

// pipes do not exist here: each connection reads for itself.
type pipes struct{}

func newPipes(*Options, *clock, *counts, func() bool) *pipes { return nil }

func (p *pipes) dial(context.Context, Target, int) (dated, failure) { panic("client: no pipes here") }

func (p *pipes) hand(*exchange, bool) bool { return false }

func (p *pipes) report(*bench.ClientReport) {}

func (p *pipes) close() {}

// piped knows nothing where there are no pipes.
type piped struct{}

func (*piped) over(dated, bool) {}
func (*piped) sent(dated)       {}
func (*piped) came()            {}
func (*piped) headed()          {}
func (*piped) ended()           {}
