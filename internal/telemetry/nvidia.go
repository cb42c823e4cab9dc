package telemetry

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// nvidiaTimeout bounds the call: with a driver in trouble nvidia-smi can hang.
const nvidiaTimeout = 5 * time.Second

var nvidiaFields = []string{"name", "uuid", "driver_version", "memory.total", "power.limit", "clocks.max.sm"}

// GPUSheet lists the NVIDIA GPUs of this machine. Without any, note says why.
func GPUSheet(ctx context.Context) (gpus []bench.GPU, note string) {
	ctx, cancel := context.WithTimeout(ctx, nvidiaTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu="+strings.Join(nvidiaFields, ","), "--format=csv,noheader,nounits").Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, "nvidia-smi is not installed here"
	case ctx.Err() != nil:
		return nil, fmt.Sprintf("nvidia-smi did not answer within %v", nvidiaTimeout)
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)+string(exit.Stderr)), "\n")
		return nil, "nvidia-smi: " + line
	case err != nil:
		return nil, "nvidia-smi: " + err.Error()
	}
	gpus, err = parseNvidia(string(out))
	if err != nil {
		return nil, "nvidia-smi: " + err.Error()
	}
	if len(gpus) == 0 {
		return nil, "nvidia-smi names no GPU"
	}
	return gpus, ""
}

func parseNvidia(out string) ([]bench.GPU, error) {
	r := csv.NewReader(strings.NewReader(out))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = len(nvidiaFields)
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	var gpus []bench.GPU
	for _, f := range rows {
		number := func(i int) float64 {
			v, err := strconv.ParseFloat(strings.TrimSpace(f[i]), 64)
			if err != nil {
				return 0 // [N/A], [Not Supported]
			}
			return v
		}
		gpus = append(gpus, bench.GPU{Name: strings.TrimSpace(f[0]), UUID: strings.TrimSpace(f[1]), Driver: strings.TrimSpace(f[2]),
			MemoryMiB: number(3), PowerLimitW: number(4), MaxSMClock: number(5)})
	}
	return gpus, nil
}
