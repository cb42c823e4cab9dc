package cli

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/hub"
	"github.com/prony-bench/prony/internal/workload"
)

// dataFlags are the flags of what is sent.
type dataFlags struct {
	dataset, path, prompt          string
	isl, osl                       string
	mix, lengths                   string
	rangeRatio                     float64
	batch                          int
	systemLen, prefixes, prefixLen int
	multiTurn, strict              bool
	timeUnit                       string
	tickSpread                     duration
	images, imageSize, imageType   string
	tokenizer                      string
	allowDownload                  bool
}

func (f *dataFlags) registerData(set *pflag.FlagSet) {
	set.StringVar(&f.dataset, "dataset", "", "random (default), or one of: "+strings.Join(builtin.Datasets().Names()[1:], ", ")+"; see `prony help datasets`")
	set.StringVar(&f.path, "dataset-path", "", "file of the data set (vLLM)")
	set.StringVar(&f.prompt, "prompt", "", "one prompt for all requests (data set text)")
	set.StringVar(&f.isl, "isl", "", "input tokens of prompts that are made: N, uniform:a,b, normal:mean,sd, truncnormal:mean,sd,min,max, lognormal:mean,sd[,max], gamma:mean,sd[,max], zipf:exponent,min,max (default "+defaultISL+"; vLLM: --random-input-len)")
	set.StringVar(&f.osl, "osl", "", "output tokens, same laws (default "+defaultOSL+"; vLLM: --random-output-len)")
	set.StringVar(&f.mix, "mix", "", `mixture of lengths, in place of --isl and --osl: input, output : weight, as in "512,128:0.7;4096,512:0.3"`)
	set.StringVar(&f.lengths, "lengths", "", "draw both lengths from the rows of a CSV file, two columns by name or number: FILE.csv:prompt_tokens,output_tokens")
	set.Float64Var(&f.rangeRatio, "range-ratio", 0, "spread fixed lengths by +/- this share, as vLLM's Python bench does (vLLM: --random-range-ratio)")
	set.IntVar(&f.batch, "batch", 0, "texts to embed or documents to rank in one random request (default 1)")
	set.IntVar(&f.systemLen, "system-len", 0, "data set prefix: tokens that all prompts begin with")
	set.IntVar(&f.prefixes, "prefixes", 0, "data set prefix: number of prefixes, each shared by as many prompts (vLLM: --prefix-repetition-num-prefixes)")
	set.IntVar(&f.prefixLen, "prefix-len", 0, "data set prefix: tokens of a prefix; --isl is what comes after it (vLLM: --prefix-repetition-prefix-len)")
	set.BoolVar(&f.multiTurn, "multi-turn", false, "data set sharegpt: every turn of a conversation, with the recorded turns before it")
	set.StringVar(&f.timeUnit, "time-unit", "", "unit of a trace's timestamps, where it is not its format's own: s, ms or us (not of azure and servegen)")
	set.Var(&f.tickSpread, "tick-spread", "spread requests of one timestamp over so long, for traces whose times come in ticks")
	set.StringVar(&f.images, "images", "1", "data set images: pictures in a request, a number or a law as --isl has")
	set.StringVar(&f.imageSize, "image-size", "512x512", "data set images: width x height in pixels, each a number or a law")
	set.StringVar(&f.imageType, "image-type", "jpeg", "data set images: png or jpeg")
	set.StringVar(&f.tokenizer, "tokenizer", "server", "what counts tokens: server (what it tells), none, or "+hub.TokenizerWords+" (vLLM)")
	set.BoolVar(&f.allowDownload, "allow-download", false, "get a tokenizer that is not in the local cache from the Hugging Face hub")
	set.BoolVar(&f.strict, "strict", false, "refuse a file with a row that cannot be used; else such rows are skipped, counted and told")
}

// work builds the workload.
func (f *runFlags) workload() (bench.Workload, error) {
	w := bench.Workload{Dataset: f.dataset, Path: f.path, Prompt: f.prompt, ISL: f.isl, OSL: f.osl, RangeRatio: f.rangeRatio, Batch: f.batch,
		Mix: f.mix, Lengths: f.lengths, SystemLen: f.systemLen, Prefixes: f.prefixes, PrefixLen: f.prefixLen, MultiTurn: f.multiTurn, Strict: f.strict,
		Tokenizer: f.tokenizer, TimeUnit: f.timeUnit, TickSpread: time.Duration(f.tickSpread)}
	if w.Tokenizer == "server" {
		w.Tokenizer = "" // the way of all runs
	}
	if w.Dataset == "images" {
		w.Images, w.ImageSize, w.ImageType = f.images, f.imageSize, f.imageType
	}
	if w.Dataset == "" {
		w.Dataset = "random"
		switch {
		case w.Prompt != "":
			w.Dataset = "text"
		case w.Path != "":
			return w, fault.New(fault.Usage, "--dataset-path without --dataset", "say what is in the file: --dataset text or --dataset jsonl")
		}
	}
	if f.given("batch") && (f.batch < 1 || f.batch > mostBatch) {
		return w, fault.Usagef("such as --batch 8", "--batch must be between 1 and %d, not %d", mostBatch, f.batch)
	}
	for _, x := range []struct{ flag, sets string }{{"system-len", "prefix"}, {"prefixes", "prefix"}, {"prefix-len", "prefix"}, {"multi-turn", "sharegpt"},
		{"images", "images"}, {"image-size", "images"}, {"image-type", "images"},
		{"time-unit", timedSets()}, {"tick-spread", timedSets()}} {
		if f.given(x.flag) && !strings.Contains(" "+x.sets+" ", " "+w.Dataset+" ") {
			return w, fault.Usagef("leave it out, or choose such a data set", "--%s belongs to --dataset %s", x.flag, strings.ReplaceAll(x.sets, " ", ", "))
		}
	}
	d, err := builtin.Datasets().Get(w.Dataset)
	if err != nil {
		return w, nil // which is told where it is opened
	}
	_, invents := d.(workload.Inventor)
	_, timed := d.(workload.Timed)
	pairs := timed && invents || w.Mix != "" || w.Lengths != ""
	if w.ISL == "" && invents && !pairs {
		w.ISL = defaultISL
	}
	if _, own := d.(workload.OwnLengths); w.OSL == "" && !pairs && !own {
		w.OSL = defaultOSL
	}
	return w, nil
}

// timedSets are the data sets whose requests have times of their own.
func timedSets() string {
	var names []string
	for _, d := range builtin.Datasets().All() {
		if _, ok := d.(workload.Timed); ok {
			names = append(names, d.Name())
		}
	}
	return strings.Join(names, " ")
}
