package store

import (
	"io"
	"iter"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// parquetRow is a record as columns, with the names of the journal.
type parquetRow struct {
	ID           int64    `parquet:"id"`
	Phase        string   `parquet:"phase,dict"`
	Target       int64    `parquet:"target"`
	Conversation int64    `parquet:"conversation"`
	Turn         int64    `parquet:"turn"`
	Class        string   `parquet:"class,dict"`
	Outcome      string   `parquet:"outcome,dict"`
	Status       int64    `parquet:"status"`
	Error        string   `parquet:"error,dict"`
	RetryAfter   float64  `parquet:"retry_after_s"`
	Flags        []string `parquet:"flags,list"`
	Due          *int64   `parquet:"due_ns,optional"`
	Slot         *int64   `parquet:"slot_ns,optional"`
	Sent         *int64   `parquet:"sent_ns,optional"`
	Handed       *int64   `parquet:"handed_ns,optional"`
	Headers      *int64   `parquet:"headers_ns,optional"`
	First        *int64   `parquet:"first_ns,optional"`
	Second       *int64   `parquet:"second_ns,optional"`
	FirstAnswer  *int64   `parquet:"first_answer_ns,optional"`
	Last         *int64   `parquet:"last_ns,optional"`
	End          *int64   `parquet:"end_ns,optional"`
	Events       []int64  `parquet:"event_ns,list"`
	EventTokens  []int64  `parquet:"event_tokens,list"`
	EventChoice  []int64  `parquet:"event_choice,list"`
	ISL          *int64   `parquet:"isl,optional"`
	ISLAsked     int64    `parquet:"isl_asked"`
	ISLSource    string   `parquet:"isl_source,dict"`
	OSL          *int64   `parquet:"osl,optional"`
	OSLAsked     int64    `parquet:"osl_asked"`
	OSLSource    string   `parquet:"osl_source,dict"`
	Cached       *int64   `parquet:"cached_tokens,optional"`
	Reasoning    *int64   `parquet:"reasoning_tokens,optional"`
	Finish       string   `parquet:"finish,dict"`
	Choices      int64    `parquet:"choices"`
	OutEvents    int64    `parquet:"n_events"`
	Merged       int64    `parquet:"merged_events"`
	Inputs       int64    `parquet:"inputs"`
	Dimensions   int64    `parquet:"dimensions"`
	Reused       bool     `parquet:"connection_reused"`
	Connect      *int64   `parquet:"connect_ns,optional"`
	TLS          *int64   `parquet:"tls_ns,optional"`
	Bytes        int64    `parquet:"bytes"`
	Stamp        string   `parquet:"stamp,dict"`

	Server    map[string]float64 `parquet:"server"`
	Text      string             `parquet:"text"`
	Thinking  string             `parquet:"reasoning_text"`
	ToolCalls string             `parquet:"tool_calls"` // as JSON
}

// rowGroup bounds what is held in memory while writing.
const rowGroup = 100_000

// WriteParquet writes the records as a Parquet file, in row groups.
func (d *Dir) WriteParquet(records iter.Seq2[bench.Record, error]) error {
	return d.writeVia(ParquetFile, func(out io.Writer) error {
		w := parquet.NewGenericWriter[parquetRow](out, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowGroup))
		for r, err := range records {
			if err != nil {
				return err
			}
			if _, err := w.Write([]parquetRow{rowOf(&r)}); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

func rowOf(r *bench.Record) parquetRow {
	row := parquetRow{
		ID: int64(r.ID), Phase: r.Phase, Target: int64(r.Target), Conversation: int64(r.Conversation), Turn: int64(r.Turn), Class: r.Class,
		Outcome: string(r.Outcome), Status: int64(r.Status), Error: r.Error, RetryAfter: r.RetryAfter,
		Due: ns(r.Due), Slot: ns(r.Slot), Sent: ns(r.Sent), Handed: ns(r.Handed), Headers: ns(r.Headers), First: ns(r.First), Second: ns(r.Second),
		FirstAnswer: ns(r.FirstAnswer), Last: ns(r.Last), End: ns(r.End),
		ISL: count(r.ISL), ISLAsked: int64(r.ISLAsked), ISLSource: string(r.ISLSource),
		OSL: count(r.OSL), OSLAsked: int64(r.OSLAsked), OSLSource: string(r.OSLSource),
		Cached: count(r.Cached), Reasoning: count(r.Reasoning), Finish: string(r.Finish),
		Reused: r.Reused, Connect: ns(r.Connect), TLS: ns(r.TLS), Bytes: int64(r.Bytes), Stamp: string(r.Stamp),
		Choices: int64(r.Choices), OutEvents: int64(r.OutEvents), Merged: int64(r.Merged),
		Inputs: int64(r.Inputs), Dimensions: int64(r.Dimensions),
		Server: r.Server, Text: r.Text, Thinking: r.Thinking, ToolCalls: string(r.ToolCalls),
	}
	for _, f := range r.Flags {
		row.Flags = append(row.Flags, string(f))
	}
	for _, e := range r.Events {
		row.Events = append(row.Events, int64(e))
	}
	for _, n := range r.EventTokens {
		row.EventTokens = append(row.EventTokens, int64(n))
	}
	for _, n := range r.EventChoice {
		row.EventChoice = append(row.EventChoice, int64(n))
	}
	return row
}

func ns(o opt.Of[time.Duration]) *int64 {
	if v, ok := o.Get(); ok {
		n := int64(v)
		return &n
	}
	return nil
}

func count(o opt.Of[int]) *int64 {
	if v, ok := o.Get(); ok {
		n := int64(v)
		return &n
	}
	return nil
}
