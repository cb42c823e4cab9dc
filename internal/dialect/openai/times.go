package openai

import (
	"encoding/json"

	"github.com/prony-bench/prony/internal/dialect"
)

// nvext is Dynamo's block beside the choices.
type nvext struct {
	Timing *struct {
		TTFT    *float64 `json:"ttft_ms"`
		ITL     *float64 `json:"itl_ms"`
		MeanITL *float64 `json:"avg_itl_ms"`
		Queue   *float64 `json:"prefill_wait_time_ms"`
		Prefill *float64 `json:"prefill_time_ms"`
		Total   *float64 `json:"total_time_ms"`
	} `json:"timing"`
}

// metrics are vLLM's, with --enable-per-request-metrics.
type metrics struct {
	TTFT   *float64 `json:"time_to_first_token_ms"`
	Decode *float64 `json:"generation_time_ms"`
	Queue  *float64 `json:"queue_time_ms"`
	ITL    *float64 `json:"mean_itl_ms"`
}

// toldTimes adds the server's own times in these blocks. One of another form is that of another server, and ignored.
func (o *object) toldTimes(d *dialect.Delta) {
	add := func(key string, v *float64) {
		if v != nil {
			d.Server = append(d.Server, dialect.ServerTime{Key: key, Value: *v})
		}
	}
	if len(o.NVExt) > 0 {
		var n nvext
		if err := json.Unmarshal(o.NVExt, &n); err == nil && n.Timing != nil {
			t := n.Timing
			add("server_ttft_ms", t.TTFT)
			add("server_itl_ms", t.ITL)
			add("server_itl_ms", t.MeanITL)
			add("server_queue_ms", t.Queue)
			add(prefillKey, t.Prefill)
			add("server_e2e_ms", t.Total)
		}
	}
	if len(o.Metrics) > 0 {
		var m metrics
		if err := json.Unmarshal(o.Metrics, &m); err == nil {
			add("server_ttft_ms", m.TTFT)
			add("server_itl_ms", m.ITL)
			add("server_queue_ms", m.Queue)
			add(decodeKey, m.Decode)
		}
	}
}
