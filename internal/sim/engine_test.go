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

// stream sends one streamed completion and returns when its tokens came after it was sent, and the usage.
func (c *client) stream(t *testing.T, prompt string, tokens int) (at []time.Duration, usage string) {
	t.Helper()
	a := c.call(post("/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"ignore_eos":true,"stream":true,`+
		`"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, prompt, tokens)))
	ev := a.events()
	if a.status != 200 || a.err != nil || len(ev) < 3 {
		t.Errorf("status %d, %d events, %v", a.status, len(ev), a.err)
		return nil, ""
	}
	have := 0
	for _, e := range ev[:len(ev)-2] {
		var chunk struct {
			Usage struct {
				N int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
			t.Error(err)
		}
		for ; have < chunk.Usage.N; have++ {
			at = append(at, e.at-a.sent)
		}
	}
	if len(at) != tokens {
		t.Errorf("%d tokens of %d", len(at), tokens)
	}
	return at, ev[len(ev)-2].data
}

// distinct is a prompt of n tokens that shares no block with that of another i.
func distinct(i, n int) string {
	w := newWriter([]int32{int32(i)}, 1)
	var b []byte
	for k := range n {
		b = appendToken(b, w.token(k))
	}
	return string(b)
}

// One request on an idle engine takes exactly the steps of its roofline.
func TestEngineAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := &Cost{Base: 5 * time.Millisecond, PerPrefill: 1000, PerDecode: 2000, PerRead: 10}
		r := serveMem(t, Config{Mode: ModeEngine, Engine: EngineConfig{Cost: cost}})
		c := r.dial()
		time.Sleep(time.Second)
		at, _ := c.stream(t, distinct(1, 100), 4)
		// prefill: 5 ms + 100 us + 1 us; decode k: 5 ms + 2 us + (101+k) * 10 ns
		want := []time.Duration{5_101_000}
		for k := range time.Duration(3) {
			want = append(want, want[k]+5_002_000+10*(101+k))
		}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("tokens at %v, want %v", at, want)
		}
		c.nc.Close()
		r.stop()
		rec := r.s.Truth()[0]
		if rec.Output != 4 || rec.Queued != 0 || rec.Prompt != 100 {
			t.Errorf("%+v", rec)
		}
	})
}

// A request that arrives while the engine is busy waits for the end of the step, and for its turn.
func TestEngineQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeEngine, Engine: EngineConfig{Cost: &Cost{Base: 10 * time.Millisecond}, MaxNumSeqs: 1}})
		var wg sync.WaitGroup
		for i, want := range []time.Duration{10 * time.Millisecond, 37 * time.Millisecond} { // sent at 0 and 3 ms; the first ends at 30
			wg.Go(func() {
				c := r.dial()
				defer c.nc.Close()
				time.Sleep(time.Duration(3*i) * time.Millisecond)
				if at, _ := c.stream(t, distinct(i, 10), 3); at[0] != want || at[2] != want+20*time.Millisecond {
					t.Errorf("request %d: tokens after %v", i, at)
				}
			})
		}
		time.Sleep(15 * time.Millisecond)
		page := pageSeries(t, string(r.s.meterPage(vllmMetrics)))
		l := `{engine="0",model_name="m"}`
		if page["vllm:num_requests_running"+l] != "1.0" || page["vllm:num_requests_waiting"+l] != "1.0" {
			t.Errorf("running %s, waiting %s", page["vllm:num_requests_running"+l], page["vllm:num_requests_waiting"+l])
		}
		wg.Wait()
		r.stop()
		if rec := r.s.Truth()[1]; rec.Queued != 27*time.Millisecond {
			t.Errorf("queued for %v", rec.Queued)
		}
	})
}

// A closed loop at 1 to 256 users: throughput grows, and then saturates; the time between tokens grows.
func TestEngineSaturates(t *testing.T) {
	const prompt, tokens, rounds = 64, 16, 3
	level := func(users int) (throughput float64, itl time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeEngine, MaxModelLen: 1024,
				Engine: EngineConfig{Cost: &Cost{Base: 5 * time.Millisecond, PerPrefill: 20_000, PerDecode: 100_000}, NoPrefixCache: true}})
			var wg sync.WaitGroup
			var mu sync.Mutex
			for u := range users {
				wg.Go(func() {
					c := r.dial()
					defer c.nc.Close()
					for k := range rounds {
						at, _ := c.stream(t, distinct(u*rounds+k, prompt), tokens)
						mu.Lock()
						itl += at[tokens-1] - at[0]
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			throughput = float64(users*rounds*tokens) / r.now().Seconds()
			itl /= time.Duration(users * rounds * (tokens - 1))
			r.stop()
		})
		return throughput, itl
	}
	got := map[int]float64{}
	lastITL := time.Duration(0)
	for _, users := range []int{1, 4, 16, 64, 256} {
		tps, itl := level(users)
		got[users] = tps
		t.Logf("%3d users: %7.1f tokens/s, %v between tokens", users, tps, itl)
		if itl <= lastITL {
			t.Errorf("%d users: %v between tokens, fewer users %v", users, itl, lastITL)
		}
		lastITL = itl
	}
	// the limit of this cost: 16 tokens need 64 * 20 us + 16 * 100 us of the engine beside the base
	const limit = 16 / (64*20e-6 + 16*100e-6)
	if got[4] < 3*got[1] || got[16] < 1.8*got[4] || got[256] > limit || got[256] < 0.85*limit || got[256] > 1.4*got[64] {
		t.Errorf("throughput %v, limit %.0f", got, limit)
	}
}

// An open loop beyond capacity: the time to the first token grows with time without end; below capacity it does not.
func TestEngineOverload(t *testing.T) {
	const n, prompt, tokens = 240, 64, 16
	open := func(rate float64) (ttft []time.Duration) {
		ttft = make([]time.Duration, n)
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeEngine, MaxModelLen: 1024,
				Engine: EngineConfig{Cost: &Cost{Base: 5 * time.Millisecond, PerPrefill: 20_000, PerDecode: 100_000}, MaxNumSeqs: 32}})
			var wg sync.WaitGroup
			for i := range n {
				time.Sleep(time.Duration(float64(time.Second) / rate))
				wg.Go(func() {
					c := r.dial()
					defer c.nc.Close()
					at, _ := c.stream(t, distinct(i, prompt), tokens)
					ttft[i] = at[0]
				})
			}
			wg.Wait()
			r.stop()
		})
		return ttft
	}
	mean := func(d []time.Duration) (m time.Duration) {
		for _, x := range d {
			m += x
		}
		return m / time.Duration(len(d))
	}
	calm := open(50)
	if a, b := mean(calm[40:80]), mean(calm[200:240]); b > 2*a || b > 50*time.Millisecond {
		t.Errorf("below capacity the first token came after %v, later after %v", a, b)
	}
	flood := open(1000)
	slope, r2 := line(flood[60:])
	t.Logf("at 50/s %v then %v; at 1000/s %v and %v later for each request, r2 %.3f", mean(calm[40:80]), mean(calm[200:240]),
		flood[60], slope, r2)
	// with 32 sequences two begin and two end at each step of 5 ms + 32 * 100 us + 2 * 64 * 20 us: one request each 5.38 ms, of which
	// 1 ms passes between arrivals
	if want := 4380 * time.Microsecond; r2 < 0.97 || slope < want*9/10 || slope > want*11/10 {
		t.Errorf("beyond capacity the first token comes %v later for each request, r2 %.3f", slope, r2)
	}
}

// line fits a line through (i, y[i]): its slope, and the share of the variance that it explains.
func line(y []time.Duration) (slope time.Duration, r2 float64) {
	n := float64(len(y))
	var sx, sy, sxx, sxy, syy float64
	for i, v := range y {
		x, v := float64(i), float64(v)
		sx, sy, sxx, sxy, syy = sx+x, sy+v, sxx+x*x, sxy+x*v, syy+v*v
	}
	cov, vx, vy := sxy-sx*sy/n, sxx-sx*sx/n, syy-sy*sy/n
	return time.Duration(cov / vx), cov * cov / (vx * vy)
}

// The prefix cache shows in the usage, in the metrics and in the time to the first token.
func TestEnginePrefixCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeEngine, Engine: EngineConfig{Cost: &Cost{Base: time.Millisecond, PerPrefill: 100_000}}})
		c := r.dial()
		cold, usage := c.stream(t, distinct(1, 1000), 3)
		if strings.Contains(usage, "cached") {
			t.Error(usage)
		}
		warm, usage := c.stream(t, distinct(1, 1000), 3)
		if !strings.Contains(usage, `"prompt_tokens_details":{"cached_tokens":992}`) {
			t.Error(usage)
		}
		if cold[0] != 101*time.Millisecond || warm[0] != 1800*time.Microsecond {
			t.Errorf("first token after %v cold, %v warm", cold[0], warm[0])
		}
		a := c.call(post("/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2}`, distinct(1, 1000))))
		if !strings.Contains(a.body, `"prompt_tokens_details":{"cached_tokens":992,"created_cache_tokens":null,"multimodal_tokens":null}`) {
			t.Error(a.body)
		}
		a = c.call(post("/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2,"cache_salt":"x"}`, distinct(1, 1000))))
		if !strings.Contains(a.body, `"prompt_tokens_details":null`) {
			t.Error(a.body)
		}
		page := pageSeries(t, c.call(get("/metrics")).body)
		l := `{engine="0",model_name="m"}`
		for name, want := range map[string]string{"vllm:prefix_cache_queries_total" + l: "4000.0", "vllm:prefix_cache_hits_total" + l: "1984.0",
			"vllm:prompt_tokens_cached_total" + l: "1984.0", "vllm:kv_cache_usage_perc" + l: "0.0", "vllm:num_requests_waiting" + l: "0.0"} {
			if page[name] != want {
				t.Errorf("%s is %s, want %s", name, page[name], want)
			}
		}
		c.nc.Close()
		r.stop()
		if truth := r.s.Truth(); truth[1].Cached != 992 || truth[0].Cached != 0 {
			t.Errorf("truth: %d, %d cached", truth[0].Cached, truth[1].Cached)
		}
	})
}

// Speculation gives several tokens a chunk; a preset gives the scale of a real machine; a client that leaves frees its blocks.
func TestEngineSpeculationAndAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeEngine, Engine: EngineConfig{Preset: "h200/llama-70b/fp8/tp8", Draft: 3, Acceptance: 1}})
		c := r.dial()
		at, _ := c.stream(t, distinct(1, 100), 41)
		if at[1] != at[4] || at[1] == at[0] || at[4] == at[5] || at[37] != at[40] {
			t.Errorf("tokens at %v", at)
		}
		if step := at[5] - at[1]; step < 2*time.Millisecond || step > 20*time.Millisecond {
			t.Errorf("a step takes %v", step)
		}
		gone := r.dial()
		time.AfterFunc(100*time.Millisecond, func() { gone.nc.Close() })
		gone.call(post("/v1/completions", `{"prompt":"hello there my friend","max_tokens":20000,"stream":true}`))
		time.Sleep(time.Second)
		page := pageSeries(t, c.call(get("/metrics")).body)
		l := `{engine="0",model_name="m"}`
		if page["vllm:num_requests_running"+l] != "0.0" || page["vllm:kv_cache_usage_perc"+l] != "0.0" ||
			page["vllm:spec_decode_num_drafts_total"+l] == "" || page["vllm:spec_decode_num_drafts_total"+l] == "0.0" ||
			page[`vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"}`] == "0.0" {
			t.Errorf("running %s, KV %s, drafts %s", page["vllm:num_requests_running"+l], page["vllm:kv_cache_usage_perc"+l],
				page["vllm:spec_decode_num_drafts_total"+l])
		}
		c.nc.Close()
		r.stop()
		if rec := r.s.Truth()[1]; rec.Outcome != Aborted || rec.Output == 0 {
			t.Errorf("%+v", rec)
		}
	})
}

// An answer that is not streamed comes with its last token; faults work in engine mode as well.
func TestEngineWholeAndFaults(t *testing.T) {
	faults, err := ParseFaults("at-once:every2")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeEngine, Faults: faults, Output: FixedLength(6),
			Engine: EngineConfig{Cost: &Cost{Base: 10 * time.Millisecond}}})
		c := r.dial()
		a := c.call(post("/v1/chat/completions", chat("", "hi", "")))
		if a.end-a.sent != 60*time.Millisecond || !strings.Contains(a.body, `"completion_tokens":6`) || !strings.Contains(a.body, `"stop"`) {
			t.Errorf("after %v: %s", a.end-a.sent, a.body)
		}
		a = c.call(post("/v1/chat/completions", chat("", "hi", `,"stream":true`)))
		if a.end-a.sent != 60*time.Millisecond || len(a.pieces) != 1 || len(a.events()) != 8 {
			t.Errorf("after %v: %d reads, %d events", a.end-a.sent, len(a.pieces), len(a.events()))
		}
		c.nc.Close()
		r.stop()
	})
}
