package dialect

import "github.com/prony-bench/prony/internal/bench"

// Sampling sets how tokens are picked, under the names that nearly all engines have for it; that of the seed differs.
func (b *Object) Sampling(s *bench.Sampling, seed string) {
	if s.Temperature != nil {
		b.Set("temperature", *s.Temperature)
	}
	if s.TopP != nil {
		b.Set("top_p", *s.TopP)
	}
	if s.TopK != nil {
		b.Set("top_k", *s.TopK)
	}
	if s.Seed != nil {
		b.Set(seed, *s.Seed)
	}
	if len(s.Stop) > 0 {
		b.Set("stop", s.Stop)
	}
}

// Length sets the fields of an answer's length beside its limit: whether the end token is ignored, and the least number of tokens.
func (b *Object) Length(ep Endpoint, r *bench.Request, o *Options, least string) {
	if o.Sampling.IgnoreEOS || o.ForceLength && ep.Can.IgnoreEOS {
		b.Set("ignore_eos", true)
	}
	switch {
	case least == "": // it has none
	case o.Sampling.MinTokens > 0:
		b.Set(least, o.Sampling.MinTokens)
	case o.ForceLength && ep.Can.MinTokens && r.OSL > 0:
		b.Set(least, r.OSL)
	}
}
