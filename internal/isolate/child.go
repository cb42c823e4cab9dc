package isolate

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/telemetry"
	"github.com/prony-bench/prony/internal/wire"
)

// mostBehind is how many bytes of answers the parent may be behind: over a second of 1,000 streams. Beyond, the engine's deliverer waits,
// then its threads do not read, which the report counts.
const mostBehind = 32 << 20

// Serve is the child: it runs an engine for the parent at the other ends of in and out. It returns when in ends; a parent that is gone
// has nobody who waits for answers, and they are cut.
func Serve(in io.Reader, out io.Writer) error {
	f := newFrames(in)
	k, b, err := f.next()
	if err == nil && k != kindOptions {
		err = errFrame
	}
	if err != nil {
		return fault.Wrap(fault.Usage, err, "no parent speaks to this engine", "it is started by `prony run --isolate`")
	}
	o, err := unpack(b)
	if err != nil {
		out.Write(whole(kindReady, []byte(err.Error())))
		return err
	}
	if _, err := out.Write(whole(kindReady, nil)); err != nil {
		return err
	}
	s := &speaker{newOutbox(out, mostBehind)}
	o.Sink = s
	toll := telemetry.StartToll()
	e := client.New(o)
	closed := make(chan struct{}) // the engine is
	closing := false
	end := func() {
		if closing {
			return
		}
		closing = true
		go func() {
			defer close(closed)
			r := e.Close()
			r.Toll = toll()
			b, _ := json.Marshal(r) // numbers and texts
			s.out.force(whole(kindReport, b))
			s.out.end()
		}()
	}
	err = obey(f, e, len(o.Targets), end)
	e.Cut()
	end()
	<-closed
	return err
}

// obey carries out what the parent says, until it says no more.
func obey(f *frames, e client.Engine, targets int, end func()) error {
	for {
		k, b, err := f.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p := &parser{b: b}
		switch k {
		case kindSubmit:
			j := p.submit()
			if p.err != nil || j.Target < 0 || j.Target >= targets {
				return errFrame
			}
			e.Submit(j)
		case kindOpen:
			target, n := p.unsigned(), p.unsigned()
			if p.err != nil || target >= uint64(targets) {
				return errFrame
			}
			e.Open(int(target), int(n))
		case kindDrain:
			e.Drain()
		case kindCut:
			e.Cut()
		case kindClose:
			end()
		default:
			return errFrame
		}
	}
}

func openFrame(target, n int) []byte {
	return finish(binary.AppendUvarint(binary.AppendUvarint(begin(nil, kindOpen), uint64(target)), uint64(n)), 0)
}

// speaker is the sink of the child's engine.
type speaker struct{ out *outbox }

// aMark is the most that a mark takes in a frame.
const aMark = 2 * binary.MaxVarintLen64

// Part implements client.Sink.
func (s *speaker) Part(j *client.Job, p wire.Part) {
	s.out.put(true, len(p.Raw)+aMark*len(p.Marks), func(b []byte) []byte { return putPart(b, j.Tag.(uint64), &p) })
	release(p.Release)
}

// Done implements client.Sink.
func (s *speaker) Done(j *client.Job, t *wire.Transcript) {
	s.out.put(true, len(t.Raw)+aMark*len(t.Marks), func(b []byte) []byte { return putDone(b, j.Tag.(uint64), t) })
	release(t.Release)
}

func release(f func()) {
	if f != nil {
		f()
	}
}
