package cli

import "github.com/spf13/cobra"

// datasetsTopic is `prony help datasets`.
func datasetsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "datasets",
		Short: "What the data sets are, and the form of their files",
		Long: `--dataset random (the default) invents prompts of --isl input tokens as the server counts them, for --osl output tokens. They differ
between runs unless --seed is given, and share no prefix. To embed they are texts, --batch of them in a request; to rank they are
documents, --batch of them, with a query of 16 words: a document has --isl tokens, those of the query included where the server
counts them with each document.

--dataset text takes --prompt TEXT for all requests, or the lines of --dataset-path FILE, one prompt or text to embed a line, over
and over.

--dataset jsonl takes a JSON object a line of --dataset-path FILE, over and over:
  prompt         a text; or
  messages       a list of {"role":..., "content":...}, the content a text or a list of parts; or
  input_ids      a list of token ids (--endpoint completions); or
  input, inputs  a text or a list of texts (--endpoint embeddings); or
  query with documents, a text and a list of texts (--endpoint rerank)
  output_tokens  the output limit of this request, in place of --osl
  extra_body     an object merged into this request's body
  timestamp      ms, for --arrivals trace
One of the first five is needed; a field that is not listed is refused. Rows of vLLM's custom data set, AIPerf's single_turn and multi_turn
and trtllm-bench are read, too. Files are UTF-8. A row that cannot be used is skipped and told; --strict refuses the file instead.

  {"prompt":"Why is the sky blue?","output_tokens":64}
  {"messages":[{"role":"user","content":"Hello"}],"extra_body":{"seed":1}}
  {"input":["The sea is blue.","The sky is too."]}
  {"query":"Why is the sky blue?","documents":["Air scatters light.","Bananas are yellow."],"extra_body":{"top_n":1}}

--dataset random-ids is random of token ids and nothing else. --dataset prefix makes prompts that begin alike (--system-len, --prefixes,
--prefix-len). --dataset images adds pictures that are made (--images, --image-size, --image-type). --dataset sharegpt takes recorded
conversations, --multi-turn all of their turns. mooncake, azure, burstgpt, bailian and servegen are traces: --arrivals trace sends at their times,
--tick-spread spreads requests of one moment. docs/data-sets.md says more of each; prony workload show prints what would be sent.`,
	}
}
