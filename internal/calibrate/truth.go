package calibrate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// truth is what the server says that it did.
type truth struct {
	late float64          // share of its writes that it made late
	of   map[string]*said // by request id
}

// said is the truth of one request. Times are wall-clock, Unix ns.
type said struct {
	ID      string  `json:"request_id"`
	Arrival int64   `json:"arrival_wall_ns"`
	Stamp   string  `json:"arrival_stamp"` // socket: the kernel's
	Wall    []int64 `json:"write_wall_ns"`
	Tokens  []int   `json:"write_tokens"`
}

// writes returns when the writes that carried tokens were made.
func (s *said) writes() []int64 {
	var out []int64
	for i, at := range s.Wall {
		if i < len(s.Tokens) && s.Tokens[i] > 0 {
			out = append(out, at)
		}
	}
	return out
}

// askLimit bounds a question to the server.
const askLimit = 30 * time.Second

func ask(ctx context.Context, method, url string, take func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url+"/truth", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		defer resp.Body.Close()
		if err = take(resp.Body); resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the simulated engine does not tell its truth", "has something stopped its process?")
	}
	return nil
}

// forgetTruth makes the server begin anew.
func forgetTruth(ctx context.Context, url string) error {
	return ask(ctx, http.MethodDelete, url, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
}

// The truth of an answer is kept once it is over, which the client knows a moment earlier: it is asked for again, so often and so far
// apart.
const (
	truthTries = 20
	truthPause = 50 * time.Millisecond
)

// fetchTruth asks until the truth of all ok requests is there, or gives what there is.
func fetchTruth(ctx context.Context, url string, records []bench.Record) (t *truth, err error) {
	for range truthTries {
		if err = ask(ctx, http.MethodGet, url, func(r io.Reader) (err error) { t, err = readTruth(r); return err }); err != nil {
			return nil, err
		}
		if t.knows(records) {
			break
		}
		select {
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(truthPause):
		}
	}
	return t, nil
}

// knows tells whether all ok requests are among the truth.
func (t *truth) knows(records []bench.Record) bool {
	for i := range records {
		if r := &records[i]; r.Outcome == bench.OK && t.of[idOf(r)] == nil {
			return false
		}
	}
	return true
}

// readTruth reads the server's head and its requests, one JSON object a line.
func readTruth(r io.Reader) (*truth, error) {
	dec := json.NewDecoder(bufio.NewReader(r))
	var head struct {
		Server struct {
			Pace struct {
				Writes int64 `json:"writes"`
				Late   int64 `json:"late_writes"`
			} `json:"pace"`
		} `json:"server"`
	}
	if err := dec.Decode(&head); err != nil {
		return nil, err
	}
	t := &truth{of: map[string]*said{}}
	if p := head.Server.Pace; p.Writes > 0 {
		t.late = float64(p.Late) / float64(p.Writes)
	}
	for {
		s := &said{}
		if err := dec.Decode(s); err == io.EOF {
			return t, nil
		} else if err != nil {
			return nil, err
		}
		if s.ID != "" {
			t.of[s.ID] = s
		}
	}
}
