package sim

import (
	"fmt"
	"net/http"
)

// tei is Hugging Face's Text Embeddings Inference. Counts and times of an answer are in its head.
func tei() *dialect {
	head := list(parse("x-compute-type: cpu"), parse("x-compute-tokens: $prompt"), parse("x-total-time: $wholemsint"), parse("x-tokenization-time: 0"),
		parse("x-queue-time: 0"), parse("x-inference-time: $wholemsint"))
	ranks := rerank("/rerank", teiRanks)
	ranks.speak = func(g *generation, w *wish) speaker { return &batch{g, w, teiRanks, head} }
	return &dialect{
		fingerprint: "tei", refuse: teiRefusal, guards: func(path string) bool { return !below(path, "/health", "/ping", "/metrics") },
		routes: []route{embeddings("/embed", teiVectors, head...), ranks, embeddings("/v1/embeddings", openAIVectors, head...)},
		pages: []page{
			alive("/health"), alive("/ping"), tells("/info", teiInfo),
			asks("/tokenize", teiTokenize),
			meters("/metrics", "text/plain; version=0.0.4", teiMetrics),
		},
	}
}

const teiInfo = `{"model_id":$model,"model_sha":null,"model_dtype":"float16","model_type":{"embedding":{"pooling":"cls"}},` +
	`"max_concurrent_requests":512,"max_input_length":$limit,"max_batch_tokens":16384,"max_batch_requests":null,"max_client_batch_size":32,` +
	`"auto_truncate":false,"tokenization_workers":2,"version":"1.8.2","sha":"simulated","docker_label":"sha-simulated"}`

func teiRefusal(e *apiError) (int, []byte) {
	switch {
	case e.cause == unauthorized:
		return e.status, nil
	case e.cause == tooLong:
		return http.StatusRequestEntityTooLarge, tgiError(fmt.Sprintf("`inputs` must have less than %d tokens. Given: %d", e.window, e.prompt), "Validation")
	case e.status == http.StatusTooManyRequests:
		return e.status, tgiError("Model is overloaded", "Overloaded")
	case e.status >= 500:
		return http.StatusFailedDependency, tgiError("Backend failed", "Backend")
	}
	return http.StatusUnprocessableEntity, tgiError(e.message, "Validation")
}

func teiTokenize(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Inputs string `json:"inputs"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	type token struct {
		placedToken
		Special bool `json:"special"`
	}
	out := []token{}
	for _, t := range placed(in.Inputs) {
		out = append(out, token{t, false})
	}
	return marshal([][]token{out}), nil
}

func teiMetrics(p *meterPage, r *readings) {
	p.created = ""
	p.count("te_request_count", "Total number of requests", series{`method="batch"`, r.succeeded() + r.aborted()})
	p.count("te_request_success", "Number of successful requests", series{`method="batch"`, r.succeeded()})
	p.count("te_request_failure", "Number of failed requests", series{`err="backend"`, r.aborted()})
	p.gauge("te_queue_size", "Current queue size", r.waiting)
	p.gauge("te_batch_next_size", "Batch size", r.running)
	p.histogram("te_batch_next_tokens", "Tokens of a batch", r.promptLength)
	p.histogram("te_request_duration", "Request duration", r.whole)
	p.histogram("te_request_queue_duration", "Request queue duration", r.queue)
	p.histogram("te_request_inference_duration", "Request inference duration", r.whole)
	p.histogram("te_request_input_length", "Input token length per request", r.promptLength)
}
