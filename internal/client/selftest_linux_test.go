package client

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

func TestStampTest(t *testing.T) {
	got := TestStamps()
	if got.Events != testEvents || !got.UserAfterSocket50.Defined() || got.Trouble != "" {
		t.Errorf("%+v", got)
	}
	if wireAfter, ok := got.SocketAfterWire50.Get(); ok && (wireAfter < int64(wireLeast) || wireAfter > int64(wireMost) || got.Dated < testEvents/5) {
		t.Errorf("%+v", got)
	}
	t.Logf("%+v", got)
}

func TestComparison(t *testing.T) {
	mark := func(end int, us time.Duration) wire.Mark { return wire.Mark{End: end, At: us * time.Microsecond} }
	c := &comparison{}
	c.add([]wire.Mark{mark(10, 5), mark(30, 9), mark(40, 20)}, []wire.Mark{mark(10, 1), mark(20, 2), mark(30, 3)})
	if len(c.after) != 2 || c.after[0] != 4*time.Microsecond || c.after[1] != 6*time.Microsecond {
		t.Error(c.after) // the last read has no packet
	}
}
