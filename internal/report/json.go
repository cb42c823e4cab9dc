package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON is the summary itself.
type JSON struct{}

// Name is json.
func (JSON) Name() string { return "json" }

// Render writes the summary. JSON knows no NaN and no infinity: a summary with one is an error.
func (JSON) Render(w io.Writer, m *Model) error {
	b, err := json.MarshalIndent(m.Summary, "", "  ")
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
