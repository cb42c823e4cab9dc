package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// 200 streams at once: the first token and every gap are exact to the nanosecond, and the truth says the same.
func TestExactStreams(t *testing.T) {
	const streams, tokens = 200, 40
	ttft, itl := 123_456_789*time.Nanosecond, 7_654_321*time.Nanosecond
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "m", TTFT: Fixed(ttft), ITL: Fixed(itl)})
		var wg sync.WaitGroup
		for i := range streams {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 1_234_567)
				c := r.dial()
				defer c.nc.Close()
				for turn := range 2 { // the second on the same connection
					a := c.call(post("/v1/chat/completions", chat("m", fmt.Sprint("hello ", i), fmt.Sprintf(
						`,"max_tokens":%d,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true`, tokens))))
					ev := a.events()
					if a.err != nil || a.status != 200 || len(ev) != tokens+3 {
						t.Errorf("stream %d.%d: status %d, %d events, %v", i, turn, a.status, len(ev), a.err)
						return
					}
					if ev[0].at != ev[1].at {
						t.Errorf("the role chunk came at %v, the first token at %v", ev[0].at, ev[1].at)
					}
					for k := range tokens {
						if want := a.sent + ttft + time.Duration(k)*itl; ev[k+1].at != want {
							t.Errorf("stream %d.%d: token %d at %v, want %v", i, turn, k, ev[k+1].at, want)
						}
					}
					if last := ev[tokens].at; ev[tokens+1].at != last || ev[tokens+2].at != last || a.end != last {
						t.Errorf("stream %d.%d: usage at %v, [DONE] at %v, end at %v, last token at %v", i, turn, ev[tokens+1].at,
							ev[tokens+2].at, a.end, last)
					}
					if !strings.Contains(ev[tokens+1].data, `"completion_tokens":40`) || ev[tokens+2].data != "[DONE]" {
						t.Errorf("tail: %v", ev[tokens+1:])
					}
				}
			})
		}
		wg.Wait()
		r.stop()
		truth := r.s.Truth()
		if len(truth) != 2*streams {
			t.Fatalf("%d records", len(truth))
		}
		for _, rec := range truth {
			if rec.Outcome != Complete || rec.Output != tokens || len(rec.Write) != tokens+1 {
				t.Fatalf("record %+v", rec)
			}
			for k := range tokens {
				want := rec.Arrival + ttft + time.Duration(k)*itl
				if rec.Write[k] != want || rec.Due[k] != want || rec.Tokens[k] != 1 || rec.Wall[k]-rec.ArrivalWall != int64(want-rec.Arrival) {
					t.Fatalf("write %d at %v (due %v, wall +%d), want %v", k, rec.Write[k], rec.Due[k], rec.Wall[k]-rec.ArrivalWall, want)
				}
			}
		}
		if p := r.s.Pace(); p.Late != 0 || p.MaxLate != 0 || p.Writes != 2*streams*(tokens+1) {
			t.Errorf("pace %+v", p)
		}
	})
}

// Several tokens a chunk: the first alone, then each chunk when its last token is due. The counts tell.
func TestTokensPerChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, TTFT: Fixed(100 * time.Millisecond), ITL: Fixed(10 * time.Millisecond), TokensPerChunk: 4})
		c := r.dial()
		a := c.call(post("/v1/completions", `{"prompt":"a b c","max_tokens":10,"stream":true,"return_token_ids":true,`+
			`"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`))
		c.nc.Close()
		r.stop()
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		want := []struct {
			at     time.Duration
			n, sum int
		}{{ms(100), 1, 1}, {ms(140), 4, 5}, {ms(180), 4, 9}, {ms(190), 1, 10}}
		ev := a.events()
		if len(ev) != len(want)+2 {
			t.Fatalf("%d events: %q", len(ev), a.body)
		}
		for i, w := range want {
			var chunk struct {
				Choices []struct {
					TokenIDs []int `json:"token_ids"`
				}
				Usage struct {
					Completion int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(ev[i].data), &chunk); err != nil {
				t.Fatal(err)
			}
			if ev[i].at != w.at || len(chunk.Choices[0].TokenIDs) != w.n || chunk.Usage.Completion != w.sum {
				t.Errorf("chunk %d at %v: %s", i, ev[i].at, ev[i].data)
			}
		}
	})
}

// An answer that is not streamed comes when its last token would be due.
func TestExactWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, TTFT: Fixed(100 * time.Millisecond), ITL: Fixed(10 * time.Millisecond)})
		c := r.dial()
		for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
			body := `{"prompt":"a b c","max_tokens":5}`
			if strings.Contains(path, "chat") {
				body = chat(DefaultModel, "a b c", `,"max_completion_tokens":5`)
			}
			a := c.call(post(path, body))
			if got := a.end - a.sent; a.status != 200 || got != 140*time.Millisecond {
				t.Errorf("%s: status %d after %v: %s", path, a.status, got, a.body)
			}
			if a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) || !json.Valid([]byte(a.body)) || !a.keep {
				t.Errorf("%s: length %s, keep %v, body %s", path, a.header.Get("Content-Length"), a.keep, a.body)
			}
		}
		c.nc.Close()
		r.stop()
	})
}

// The drawn latencies of a seed are the same in every run, and the first token's law is not the gaps'.
func TestExactLaws(t *testing.T) {
	run := func(seed uint64) (out []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Seed: seed, TTFT: must(ParseDurationLaw("uniform:100ms,200ms")),
				ITL: must(ParseDurationLaw("lognormal:10ms,3ms"))})
			c := r.dial()
			a := c.call(post("/v1/completions", `{"prompt":"a","max_tokens":50,"stream":true}`))
			c.nc.Close()
			r.stop()
			last := a.sent
			for _, e := range a.events() {
				out = append(out, e.at-last)
				last = e.at
			}
		})
		return out
	}
	a, b, other := run(1), run(1), run(2)
	if len(a) != 51 || fmt.Sprint(a) != fmt.Sprint(b) || fmt.Sprint(a) == fmt.Sprint(other) {
		t.Errorf("seed 1: %v, again %v, seed 2: %v", a, b, other)
	}
	if a[0] < 100*time.Millisecond || a[0] > 200*time.Millisecond {
		t.Errorf("first token after %v", a[0])
	}
}

// The length that the model would choose, what bounds it and how it ends.
func TestOutputLength(t *testing.T) {
	for _, c := range []struct {
		name, law, rest string
		tokens          int
		finish          string
	}{
		{"limit", "", `,"max_tokens":7`, 7, "length"},
		{"no limit in a chat", "", ``, DefaultOutput, "stop"},
		{"model stops first", "20", `,"max_tokens":50`, 20, "stop"},
		{"limit first", "80", `,"max_tokens":50`, 50, "length"},
		{"forced", "20", `,"max_tokens":50,"ignore_eos":true`, 50, "length"},
		{"raised", "20", `,"max_tokens":50,"min_tokens":30`, 30, "stop"},
		{"raised to the limit", "20", `,"max_tokens":50,"min_tokens":50`, 50, "length"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Mode: ModeExact}
			if c.law != "" {
				cfg.Output = must(ParseLengthLaw(c.law))
			}
			r := serveMem(t, cfg)
			cl := r.dial()
			a := cl.call(post("/v1/chat/completions", chat("", "hi", c.rest)))
			cl.nc.Close()
			r.stop()
			var got struct {
				Choices []struct {
					Message      struct{ Content string }
					FinishReason string `json:"finish_reason"`
				}
				Usage struct {
					Completion int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(a.body), &got); err != nil {
				t.Fatal(err, a.body)
			}
			words := c.tokens
			if c.finish == "stop" {
				words-- // the end token has no text
			}
			choice := got.Choices[0]
			if got.Usage.Completion != c.tokens || choice.FinishReason != c.finish || len(strings.Fields(choice.Message.Content)) != words {
				t.Errorf("%s: %s", c.name, a.body)
			}
		})
	}
}
