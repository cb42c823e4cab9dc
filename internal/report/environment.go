package report

import (
	"strings"
)

// environment fills in where the run was made.
func (b *builder) environment(m *Model) {
	section := func(name string, f facts) {
		if len(f) > 0 {
			m.Environment = append(m.Environment, Section{name, f})
		}
	}
	sheet := &b.man.Sheet
	for _, e := range sheet.Engines {
		var f facts
		f.add("URL", e.URL)
		f.add("engine", joined(" ", e.Name, e.Version))
		f.add("model", e.Model)
		f.addIf(e.MaxLen > 0, "context length", count(e.MaxLen)+" tokens")
		f.addIf(e.Slots > 0, "slots", count(e.Slots))
		f.add("quantisation", e.Quant)
		f.addIf(e.Vocab > 0, "vocabulary", count(e.Vocab))
		f.add("addresses", strings.Join(e.Addresses, ", "))
		section("Server", f)
	}

	var f facts
	for _, g := range sheet.GPUs {
		f.add("GPU", joined(", ", g.Name, worded(g.MemoryMiB > 0, gibibytes(g.MemoryMiB*(1<<20))), prefix("driver ", g.Driver), worded(g.PowerLimitW > 0, "limit "+number(g.PowerLimitW)+" W")))
	}
	f.addIf(len(sheet.GPUs) == 0 && sheet.GPUNote != "", "GPU", "none found: "+sheet.GPUNote)
	section("GPUs of the client's machine", f)

	f = nil
	h := sheet.Host
	f.add("CPU", h.CPU)
	f.addIf(h.Cores > 0, "cores", joined(", ", count(h.Cores), worded(h.CPULimit > 0, "limited to "+number(h.CPULimit)), prefix("governor ", h.Governor)))
	f.addIf(h.MemoryBytes > 0, "memory", joined(", ", gibibytes(float64(h.MemoryBytes)), worded(h.MemoryLimit > 0, "limited to "+gibibytes(float64(h.MemoryLimit)))))
	f.add("system", joined(" ", h.OS, h.Kernel, h.Arch))
	f.add("virtual machine", h.Virtual)
	section("Client's machine", f)

	f = nil
	f.add("prony", joined(", ", b.man.Prony, b.man.Go))
	c := b.man.Client
	f.add("client", joined(", ", c.Engine, prefix("stamps: ", c.Stamp)))
	f.add("proxy", b.man.Spec.Client.Proxy)
	f.addIf(c.Connections > 0, "connections", count(c.Connections))
	f.addIf(c.Reads > 0, "reads", joined(", ", count(c.Reads), worded(c.Unstamped > 0, count(c.Unstamped)+" without a kernel stamp"), "delay p99 "+millis(float64(c.ReadDelayP99)/1e6)))
	f.add("state", joined(": ", string(b.man.State), b.man.Stopped))
	section("Client", f)
}
