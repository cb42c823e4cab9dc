package bench

import (
	"time"

	"github.com/prony-bench/prony/internal/opt"
)

// CalibrationSchema is the version of a stored calibration.
const CalibrationSchema = "prony.calibration/1"

// Calibration is the error of the client on one machine, against a server that keeps the truth, and the load up to which it holds.
type Calibration struct {
	Schema  string             `json:"schema"`
	Taken   time.Time          `json:"taken"`
	Prony   string             `json:"prony_version"`
	Machine CalibratedMachine  `json:"machine"`
	Stamp   string             `json:"stamp"` // grade in use
	Engine  string             `json:"engine"`
	Pinned  bool               `json:"pinned"` // server and client had processors of their own
	Levels  []CalibrationLevel `json:"levels"`
	Ceiling Ceiling            `json:"ceiling"`
}

// CalibratedMachine tells one machine from another, as far as that matters for the client.
type CalibratedMachine struct {
	Host   string `json:"host"`
	ID     string `json:"id,omitempty"` // hash of the system's machine id; "" = it has none
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"` // that the process might use
	Kernel string `json:"kernel"`
}

// CalibrationLevel is the client's error at one load: so many streams in a closed loop, or a rate of short answers.
type CalibrationLevel struct {
	Streams  int     `json:"streams,omitempty"`
	Rate     float64 `json:"rate,omitempty"` // requests/s
	Requests int     `json:"requests"`
	OK       int     `json:"ok"`
	Joined   int     `json:"joined"` // requests, of the ok ones, of which the server tells the truth
	// UserArrivals are those whose arrival the server could date only when it had read them, which makes the error of their TTFT larger.
	UserArrivals int `json:"user_arrivals,omitempty"`

	Events      int     `json:"events"`
	RequestRate float64 `json:"request_rate"` // requests/s that ended
	EventRate   float64 `json:"event_rate"`   // output events/s

	// TTFT is reported minus true: first output event - sent, against first write - arrival of the request at the server's socket.
	TTFT ErrorOf `json:"ttft"`
	// Event is by how much the time of each event is later than its write, both on the wall clock.
	Event ErrorOf `json:"event"`
	// ITL is reported minus true of each gap between two events, against the gap between their writes.
	ITL         ErrorOf         `json:"itl"`
	ITLRelative float64         `json:"itl_relative"` // mean error / mean true gap
	Lag50       int64           `json:"lag_p50_ns"`   // lateness of the client's sends
	Lag99       int64           `json:"lag_p99_ns"`
	Attained    opt.Of[float64] `json:"attained"`    // of the offered rate
	LateWrites  float64         `json:"late_writes"` // share of the server's writes that it made late
	// ServerLimited: the server was at its limit, so that the level bounds the client's ceiling from below only.
	ServerLimited bool   `json:"server_limited,omitempty"`
	Passed        bool   `json:"passed"`
	Why           string `json:"why,omitempty"` // it did not pass
}

// ErrorOf describes an error, in ns. The mean has a sign; the percentiles are of the magnitude.
type ErrorOf struct {
	Mean int64 `json:"mean_ns"`
	P50  int64 `json:"p50_ns"`
	P99  int64 `json:"p99_ns"`
}

// Ceiling is the highest load that passed. Where none did it is 0, and not known.
type Ceiling struct {
	RequestRate   float64 `json:"request_rate"`
	RequestsBound bool    `json:"request_rate_at_least"` // the level above it did not fail through the client: the ceiling may be higher
	EventRate     float64 `json:"event_rate"`
	EventsBound   bool    `json:"event_rate_at_least"`
}
