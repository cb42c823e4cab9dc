package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// GET /truth: a head, then a line a request above since; DELETE clears; the rings are bounded.
func TestTruthEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, TTFT: Fixed(time.Second), TruthRequests: 4, TruthWrites: 12})
		c := r.dial()
		lines := func(request string) (head TruthHead, records []TruthRecord) {
			a := c.call(request)
			if a.status != 200 || a.err != nil {
				t.Errorf("%+v", a)
			}
			for i, line := range strings.Split(strings.TrimSpace(a.body), "\n") {
				if i == 0 {
					var h struct{ Server TruthHead }
					if err := json.Unmarshal([]byte(line), &h); err != nil {
						t.Error(err, line)
					}
					head = h.Server
					continue
				}
				var rec TruthRecord
				if err := json.Unmarshal([]byte(line), &rec); err != nil {
					t.Error(err, line)
				}
				records = append(records, rec)
			}
			return head, records
		}
		if head, records := lines(get("/truth")); head.Requests != 0 || records != nil || head.StartWall != r.start.UnixNano() {
			t.Errorf("%+v %v", head, records)
		}
		ask := func(tokens int) {
			c.call(post("/v1/completions", fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"stream":true}`, tokens)))
		}
		for range 6 {
			ask(1) // two writes
		}
		head, records := lines(get("/truth"))
		if head.Requests != 6 || head.Dropped != 2 || len(records) != 4 || records[0].Seq != 3 || records[3].Seq != 6 || head.Pace.Writes != 12 {
			t.Errorf("%+v, %d records", head, len(records))
		}
		if _, records := lines(get("/truth?since=5")); len(records) != 1 || records[0].ID != 6 ||
			records[0].Write[0]-records[0].Arrival != time.Second || records[0].ArrivalStamp != "user" {
			t.Errorf("%+v", records)
		}
		ask(9) // ten writes: only one record of two fits beside it
		if head, records := lines(get("/truth")); len(records) != 2 || records[1].Output != 9 || head.Dropped != 5 {
			t.Errorf("%+v, %d records", head, len(records))
		}
		ask(100) // more than the bound: kept alone
		if _, records := lines(get("/truth")); len(records) != 1 || len(records[0].Write) != 101 {
			t.Errorf("%d records", len(records))
		}
		if a := c.call("DELETE /truth HTTP/1.1\r\nHost: s\r\n\r\n"); a.status != 200 {
			t.Errorf("%+v", a)
		}
		if head, records := lines(get("/truth")); len(records) != 0 || head.Requests != 8 || head.Pace != (Pace{LateAfter: DefaultLateAfter}) {
			t.Errorf("%+v", head)
		}
		old := r.dial()
		if a := old.call("GET /truth HTTP/1.0\r\n\r\n"); a.status != 200 || a.keep || !strings.Contains(a.body, `"server"`) {
			t.Errorf("%+v", a)
		}
		c.nc.Close()
		r.stop()
	})
}
