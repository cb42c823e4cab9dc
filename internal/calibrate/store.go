package calibrate

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Path is where calibrations are kept: below XDG_STATE_HOME, or ~/.local/state.
func Path(getenv func(string) string) (string, error) {
	base := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fault.Wrap(fault.Usage, err, "where to keep the calibration", "set XDG_STATE_HOME, or give --out FILE")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "prony", "calibration.json"), nil
}

// MachineOf tells which machine a host is.
func MachineOf(h bench.Host) bench.CalibratedMachine {
	name, _ := os.Hostname() // none is a name, too
	return bench.CalibratedMachine{Host: name, CPU: h.CPU, Cores: h.Cores, Kernel: h.Kernel}
}

// Load reads the calibrations of a file. One that is not there holds none; one that cannot be read is an error.
func Load(path string) ([]bench.Calibration, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []bench.Calibration
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Schema != bench.CalibrationSchema {
			return nil, errors.New("it is of another version of prony")
		}
	}
	return all, nil
}

// Store adds a calibration to a file, in place of an older one of the same machine and grade. What cannot be read there is replaced.
func Store(path string, c *bench.Calibration) error {
	all, err := Load(path)
	if err != nil {
		all = nil
	}
	kept := []bench.Calibration{*c}
	for _, old := range all {
		if !same(old.Machine, c.Machine) || old.Stamp != c.Stamp {
			kept = append(kept, old)
		}
	}
	b, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Internal, err, "store the calibration", "give another place with --out FILE")
	}
	tmp := path + ".new"
	if err = os.WriteFile(tmp, append(b, '\n'), 0o644); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return fault.Wrap(fault.Internal, err, "store the calibration", "give another place with --out FILE")
	}
	return nil
}

// same tells whether two descriptions are of one machine. The number of cores does not count: a process that is bound to some of them
// sees no others.
func same(a, b bench.CalibratedMachine) bool {
	return a.Host == b.Host && a.CPU == b.CPU && a.Kernel == b.Kernel
}

// Of returns the calibration of a machine with a grade of stamps; nil when there is none.
func Of(all []bench.Calibration, m bench.CalibratedMachine, stamp string) *bench.Calibration {
	for i := range all {
		if same(all[i].Machine, m) && all[i].Stamp == stamp {
			return &all[i]
		}
	}
	return nil
}
