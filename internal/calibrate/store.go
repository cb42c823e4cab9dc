package calibrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	return bench.CalibratedMachine{Host: name, ID: machineID("/etc/machine-id"), CPU: h.CPU, Cores: h.Cores, Kernel: h.Kernel}
}

// machineID is a hash of the id that the system keeps in a file, which is not to be told itself; "" where there is none.
func machineID(path string) string {
	b, err := os.ReadFile(path)
	id := strings.TrimSpace(string(b))
	if err != nil || id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("prony calibration " + id))
	return hex.EncodeToString(sum[:8])
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

// Store adds a calibration to a file, in place of an older one of the same machine, engine and grade. What cannot be read there is replaced.
func Store(path string, c *bench.Calibration) error {
	all, err := Load(path)
	if err != nil {
		all = nil
	}
	kept := []bench.Calibration{*c}
	for _, old := range all {
		if !same(old.Machine, c.Machine) || old.Stamp != c.Stamp || old.Engine != c.Engine {
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
	if err := replace(path, append(b, '\n')); err != nil {
		return fault.Wrap(fault.Internal, err, "store the calibration", "give another place with --out FILE")
	}
	return nil
}

// replace writes a file whole, or leaves it as it was.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".calibration-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// same tells whether two descriptions are of one machine. The number of cores does not count: a process that is bound to some of them
// sees no others.
func same(a, b bench.CalibratedMachine) bool { return difference(a, b) == "" }

// difference says in what a calibrated machine is another than the present one; empty when it is the same.
func difference(calibrated, here bench.CalibratedMachine) string {
	switch {
	case calibrated.Host != here.Host:
		return fmt.Sprintf("of the machine %q", calibrated.Host)
	case calibrated.ID != here.ID:
		return "of another machine of this name"
	case calibrated.CPU != here.CPU:
		return fmt.Sprintf("of another processor, %s", calibrated.CPU)
	case calibrated.Kernel != here.Kernel:
		return fmt.Sprintf("of another kernel, %s", calibrated.Kernel)
	}
	return ""
}

// Of returns the calibration for a client on a machine: of the same engine, in whatever process, with the same grade of stamps. Where
// there are only others, why says of the first of them why it does not hold.
func Of(all []bench.Calibration, m bench.CalibratedMachine, r bench.ClientReport) (c *bench.Calibration, why string) {
	engine, _, _ := strings.Cut(r.Engine, ",")
	var other string
	for i := range all {
		c := &all[i]
		switch d := difference(c.Machine, m); {
		case d != "":
			other = cmp.Or(other, d)
		case c.Stamp != r.Stamp:
			why = cmp.Or(why, fmt.Sprintf("with %s stamps, this run has %s stamps (calibrate --stamps %s)", c.Stamp, r.Stamp, r.Stamp))
		case c.Engine != engine:
			why = cmp.Or(why, fmt.Sprintf("of the engine %s, this run used %s", c.Engine, engine))
		default:
			return c, ""
		}
	}
	if why = cmp.Or(why, other); why != "" {
		why = "the calibration that is stored is " + why
	}
	return nil, why
}
