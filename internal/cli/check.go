package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/workload"
)

// Bounds of what a run may be asked for: far above what is ever meant, so that a slip of the hand does not run for years.
const (
	longestRun     = duration(366 * 24 * time.Hour)
	mostRequests   = 1_000_000_000
	longestLimitMS = 24 * 3600 * 1e3 // of --goodput
)

// maxTokensFields are the names that servers have for the output limit.
var maxTokensFields = []string{"max_tokens", "max_completion_tokens"}

// mayBeEmpty are the flags for which an empty value says something.
var mayBeEmpty = map[string]bool{"stop": true} // which has words of its own

// stampGrades are the words of --stamps.
var stampGrades = []string{"auto", "wire", "socket", "user"}

// oneOf refuses a value that is none of a flag's words.
func oneOf(flag, value string, words []string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return fault.New(fault.Usage, fmt.Sprintf("--%s is %q%s", flag, value, catalog.DidYouMean(value, words)), "it is one of: "+strings.Join(words, ", "))
}

// check refuses values that no flag can mean.
func (f *runFlags) check() error {
	for _, x := range []struct {
		flag  string
		value duration
	}{{"duration", f.duration}, {"warmup-duration", f.warmupDuration}, {"timeout", f.timeout}, {"connect-timeout", f.connectTimeout}, {"grace", f.grace}, {"wait-ready", f.waitReady}} {
		if x.value > longestRun {
			return fault.Usagef("such as 90s, 10m or 2h", "--%s is %v, longer than a year", x.flag, x.value.String())
		}
	}
	for _, x := range []struct {
		flag  string
		value int
	}{{"num-requests", f.requests}, {"warmup-requests", f.warmupRequests}, {"concurrency", f.concurrency}, {"max-concurrency", f.maxConcurrency}} {
		if x.value > mostRequests {
			return fault.Usagef("for a run without an end in requests use --duration", "--%s must be at most %d, not %d", x.flag, mostRequests, x.value)
		}
	}
	for _, s := range f.stop {
		if s == "" {
			return fault.New(fault.Usage, "--stop is empty: every answer would end at once", "leave it out, or give the text that ends an answer")
		}
	}
	if f.given("top-k") && f.topK < -1 {
		return fault.Usagef("-1 and 0 take all tokens", "--top-k must be at least -1, not %d", f.topK)
	}
	if f.given("max-tokens-field") && !slices.Contains(maxTokensFields, f.maxTokensField) {
		return fault.Usagef("it is one of: "+strings.Join(maxTokensFields, ", "), "--max-tokens-field is %q", f.maxTokensField)
	}
	if f.noStream && f.events == "none" {
		return fault.New(fault.Usage, "--events none belongs to streams: with --no-stream there are no events", "leave one of the two out")
	}
	if f.given("request-id") && strings.ContainsFunc(f.requestID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.Usagef("letters, digits and signs without spaces", "--request-id %q cannot be sent in a header", f.requestID)
	}
	if err := f.checkGenerating(); err != nil {
		return err
	}
	return f.checkLeast()
}

// generating are the flags of an output, which endpoints that embed or rank have none of.
var generating = []string{"osl", "temperature", "top-p", "top-k", "sampling-seed", "stop", "ignore-eos", "min-tokens", "max-tokens-field", "no-usage",
	"logprobs", "events"}

// checkGenerating refuses flags of an output where the endpoint has none.
func (f *runFlags) checkGenerating() error {
	name := f.endpoint[strings.LastIndexByte(f.endpoint, '/')+1:]
	if !slices.Contains([]string{"embeddings", "embed", "rerank"}, name) {
		return nil
	}
	for _, flag := range generating {
		if f.given(flag) {
			return fault.New(fault.Usage, fmt.Sprintf("--%s has no meaning with --endpoint %s, which generates nothing", flag, f.endpoint), "leave it out")
		}
	}
	return nil
}

// checkLeast refuses more tokens at least than the shortest answer may have.
func (f *runFlags) checkLeast() error {
	if f.minTokens <= 0 {
		return nil
	}
	osl := f.osl
	if osl == "" {
		osl = defaultOSL
	}
	law, err := workload.ParseLaw(osl)
	if err != nil {
		return nil // which is told where the law is used
	}
	if least := law.Least(); f.minTokens > least {
		return fault.Usagef("raise --osl, or lower --min-tokens", "--min-tokens %d is above the shortest answer of --osl %s, %d tokens", f.minTokens, osl, least)
	}
	return nil
}

// refuseEmpty refuses text flags and arguments that are given without a text.
func refuseEmpty(cmd *cobra.Command, args []string) (err error) {
	if !cmd.Hidden && slices.ContainsFunc(args, func(s string) bool { return strings.TrimSpace(s) == "" }) { // completion, which is hidden, asks with one
		return fault.New(fault.Usage, "an argument is empty", "see `"+cmd.CommandPath()+" --help`")
	}
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		empty := fl.Value.Type() == "string" && strings.TrimSpace(fl.Value.String()) == ""
		if s, ok := fl.Value.(pflag.SliceValue); ok {
			empty = slices.ContainsFunc(s.GetSlice(), func(v string) bool { return strings.TrimSpace(v) == "" })
		}
		if empty && err == nil && !mayBeEmpty[fl.Name] {
			err = fault.New(fault.Usage, "--"+fl.Name+" is empty", "give a value, or leave it out")
		}
	})
	return err
}

// refuseTwins refuses two spellings of one flag: one of them would be ignored.
func refuseTwins(args []string) error {
	spelled := map[string]string{}
	for _, a := range args {
		if a == "--" {
			break
		}
		name, ok := strings.CutPrefix(a, "--")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		of := string(normalizeFlag(nil, name))
		if before, ok := spelled[of]; ok && before != name {
			return fault.New(fault.Usage, fmt.Sprintf("--%s and --%s are one flag", before, name), "give one of them")
		}
		spelled[of] = name
	}
	return nil
}

// What the flag library says of a value that cannot be read: by Go's parsers, or by ours.
var (
	parserWords = regexp.MustCompile(`^invalid argument "(.*)" for "(--[a-z-]+)" flag: strconv\.Parse([A-Za-z]+): parsing .*: (.*)$`)
	ownWords    = regexp.MustCompile(`^invalid argument ".*" for "(--[a-z-]+)" flag: (.*)$`)
)

// plainWords says for a person why a flag's value cannot be read.
func plainWords(text string) string {
	m := parserWords.FindStringSubmatch(text)
	if m == nil {
		return ownWords.ReplaceAllString(text, "$1: $2")
	}
	what := map[string]string{"Float": "a number", "Int": "a whole number", "Uint": "a whole number from 0 on", "Bool": "true or false"}[m[3]]
	if m[4] == "value out of range" {
		what += " in the range of this flag"
	}
	return fmt.Sprintf("%s is %q, not %s", m[2], m[1], what)
}
