package report

import (
	"strings"

	"github.com/prony-bench/prony/internal/opt"
)

// degree is one kind of parallelism.
func degree(kind string, of opt.Of[int]) string {
	n, ok := of.Get()
	return worded(ok, kind+" "+count(n))
}

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
		figure := func(name string, of opt.Of[int], unit string) {
			n, ok := of.Get()
			f.addIf(ok, name, count(n)+unit)
		}
		f.add("backend", e.Backend)
		figure("context length", e.MaxLen, " tokens")
		figure("slots", e.Slots, "")
		figure("requests let in", e.MaxRequests, "")
		f.add("quantisation", e.Quant)
		f.add("parallelism", joined(", ", degree("tensor", e.Tensor), degree("pipeline", e.Pipeline), degree("data", e.Data), degree("expert", e.Expert)))
		kv, ok := e.KVTokens.Get()
		f.add("KV cache", joined(", ", worded(ok, count(kv)+" tokens"), e.KVType))
		kept, ok := e.PrefixCache.Get()
		f.addIf(ok, "prefix cache", map[bool]string{true: "on", false: "off"}[kept])
		figure("vocabulary", e.Vocab, "")
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
	spec := b.man.Spec.Client
	f.add("TLS", joined(", ", worded(spec.Insecure, "no certificate checked"), worded(spec.OwnAuthority, "an authority of its own"), worded(spec.Certificate, "with a certificate of the client")))
	f.addIf(c.Connections > 0, "connections", count(c.Connections))
	f.addIf(c.Reads > 0, "reads", joined(", ", count(c.Reads), worded(c.Unstamped > 0, count(c.Unstamped)+" without a kernel stamp"), "delay p99 "+millis(float64(c.ReadDelayP99)/1e6)))
	f.add("state", joined(": ", string(b.man.State), b.man.Stopped))
	section("Client", f)
}
