#!/usr/bin/env python3
"""Makes internal/token/testdata: small tokenizers of every kind, trained on the text below, and what Hugging Face's `tokenizers` says of them.

    pip install tokenizers==0.23.3 tiktoken==0.14.0 sentencepiece==0.2.3 protobuf
    scripts/tokenizer-vectors.py internal/token/testdata [FOLDER of *_base.tiktoken]

A kind is a NAME.json.gz and rows in vectors.jsonl.gz: {"tokenizer", "text", "ids", "ids_special", "decoded", "skipped"}: ids without
and with special tokens, and what ids_special decode to, with and without special tokens. The rows of o200k and cl100k are tiktoken's.
"""
import base64
import gzip
import io
import json
import os
import random
import sys

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = """The quick brown fox jumps over the lazy dog. It doesn't care; they're asleep, and we've seen 12345 of them since 1999.
Der schnelle braune Fuchs springt über den faulen Hund, während die Äpfel süß schmecken. Größe, Straße, Übermut.
Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au-delà des îles, près du mälström.
В чащах юга жил бы цитрус? Да, но фальшивый экземпляр! Съешь ещё этих мягких французских булок.
いろはにほへと ちりぬるを 我が世誰ぞ 常ならむ。 東京都の天気は晴れです。 世界、こんにちは！
天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。人工智能 model 测试。
def f(x):\n    return [i ** 2 for i in range(10) if i % 2 == 0]  # squares\n\tprint("done")
for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }
"""

TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n \n", "\t\t x", "a", " a", "a ", "a  b   c    ", "Hello, world!", "The quick brown fox jumps over the lazy dog.",
    "It's we've THEY'RE I'M don'T 'tis ''s 'ſ x'S", "1 12 123 1234 12345678 3.14 1,000,000 ½ ² Ⅷ ٣٤", "naïve café cœur Äpfel", "nai\u0308ve cafe\u0301", "İstanbul ǅ ß ẞ ﬁ ﬆ Å Ω K",
    "В чащах юга жил бы цитрус", "東京都の天気は晴れです。", "世界、こんにちは！", "한국어 텍스트 각각", "שלום עולם مرحبا بالعالم", "नमस्ते दुनिया ก็ดี",
    "🙂🙃 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪", "def f(x):\n    return [i ** 2 for i in range(10)]\n\n\n", "if (a != b) { c += d[i]; } // end\r\n", "https://example.org/a?b=c&d=%20#e",
    "user@example.com", "CamelCaseWords HTMLParser iOS aBC ABc ÀÉî", "<s>a</s> <pad>[CLS] x [SEP][MASK]  y", "<|endoftext|>", "a<|endoftext|>b <|endofprompt|>", "[MASK]ed un[MASK] [MASK]", "foo<tag>bar  <tag>  baz",
    "\u0000\u0001\u001f\u007f\u0085\u00a0\u200b\u200d\u2028\u3000\ufeff\ufffd", "\u0378\ue000\U000e0001", "zero\u200bwidth", "▁a▁▁b ▁", "a\u0301\u0302\u0303 \u0301x", "ﷺ ㍿ ① Ⅳ ｶﾞ Ｆｕｌｌ", "x" * 150, "ab" * 60 + " c", "\r\n\r\n  \r  x",
    "...!!! ??? --- *** ((()))", " . , ' n't 'm do not 's 've 're", "I do not , he 's . They 've n't !", "$5.00 €7 £3 ¥ ©®™", "a/b\\c|d~e`f^g", "over  the\tlazy\ndog\u3000and\u00a0more",
    "/path/to/file.txt/\n/next", "end.\n  \n ", "tab\there \n", "Ünïcödé ĂĂă ţŢ ǆǅǄ aͅ ͅb ʰʱ ªº", "ſ'ſ 'Re 'LL'll 'd'D", "1a2b3c 4D5E", "a1̈2 ̈ x̂ŷ", "  leading and trailing  ",
]


def random_texts(n):
    """Texts of pieces that meet nowhere else."""
    rng = random.Random(7)
    pieces = ["a", "The", " ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "1", "23", "4567", "é", "e\u0301", "ß", "Ж", "世", "界", "こ", "🙂", "\u200d", "!", ".", "/", "-", "_", "▁", "<s>", "<tag>", "[MASK]", "\u0301", "ǅ", "ʰ", "ª", "\u00a0", "\u3000", "ＡＢ", "ﬁ", "fox", "over", "Straße", "x" * 20]
    return ["".join(rng.choice(pieces) for _ in range(rng.randrange(1, 25))) for _ in range(n)]


def lines():
    return [line for line in CORPUS.split("\n") for _ in range(3)]


def bpe(pre, decoder, norm=None, trainer=None, post=None, **model):
    t = Tokenizer(models.BPE(**model))
    if norm is not None:
        t.normalizer = norm
    if pre is not None:
        t.pre_tokenizer = pre
    t.decoder = decoder
    t.train_from_iterator(lines(), trainers.BpeTrainer(show_progress=False, **(trainer or {})))
    if post is not None:
        t.post_processor = post
    return t


def special(*words):
    return [AddedToken(w, special=True, normalized=False) for w in words]


def charsmap():
    """The compiled nmt_nfkc rules that SentencePiece puts into its models, and a unigram vocabulary that it trained."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines()), model_writer=out, vocab_size=400, hard_vocab_limit=False, byte_fallback=False, character_coverage=0.98, minloglevel=2)
    m = sentencepiece_model_pb2.ModelProto()
    m.ParseFromString(out.getvalue())
    return m.normalizer_spec.precompiled_charsmap, [(p.piece, p.score) for p in m.pieces]


def kinds():
    bl = pre_tokenizers.ByteLevel
    alphabet = bl.alphabet()
    gpt4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    o200k = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    qwen35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    train = dict(vocab_size=700, initial_alphabet=alphabet)

    yield "gpt2", bpe(bl(add_prefix_space=False), decoders.ByteLevel(), trainer=dict(train, special_tokens=special("<|endoftext|>")))
    t = bpe(bl(add_prefix_space=True), decoders.ByteLevel(), trainer=dict(train, special_tokens=special("<s>", "<pad>", "</s>", "<unk>")))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True, normalized=False)])
    yield "roberta", t
    for name, rule in ("gpt4", gpt4), ("o200k-split", o200k), ("qwen35-split", qwen35):
        yield name, bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(rule), "isolated"), bl(add_prefix_space=False, use_regex=False)]), decoders.ByteLevel(), norm=normalizers.NFC(), trainer=dict(train, special_tokens=special("<|endoftext|>")))
    yield "deepseek", bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(Regex(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"), bl(add_prefix_space=False, use_regex=False)]), decoders.ByteLevel(), trainer=train)
    yield "falcon", bpe(pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), bl(add_prefix_space=False), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), decoders.ByteLevel(), trainer=train)
    yield "starcoder", bpe(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bl(add_prefix_space=False)]), decoders.ByteLevel(), trainer=train)
    yield "clip", bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True), bl(add_prefix_space=False)]), decoders.ByteLevel(),
        norm=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]), trainer=dict(train, end_of_word_suffix="</w>", special_tokens=special("<|endoftext|>")), end_of_word_suffix="</w>", unk_token="<|endoftext|>")

    # BPE of SentencePiece's kind: meta spaces, byte fallback, fused unknown tokens
    bytes_first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    llama = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    bos = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    t = bpe(None, llama, norm=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), trainer=dict(vocab_size=800, special_tokens=bytes_first), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    yield "llama2", llama2(t, bos)
    t = bpe(pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]), trainer=dict(vocab_size=800, special_tokens=bytes_first), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    t = llama2(t, bos)
    t.add_tokens([AddedToken("<tag>", normalized=True, rstrip=True), AddedToken("fox", normalized=False, single_word=True)])
    yield "mistral", t
    yield "bpe-unk", bpe(pre_tokenizers.Metaspace(), decoders.Metaspace(), trainer=dict(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=60), unk_token="<unk>", fuse_unk=True)
    yield "bpe-unk-each", bpe(pre_tokenizers.WhitespaceSplit(), decoders.BPEDecoder("</w>"), trainer=dict(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=60, end_of_word_suffix="</w>"), unk_token="<unk>", end_of_word_suffix="</w>")
    yield "bpe-prefix", bpe(pre_tokenizers.BertPreTokenizer(), decoders.WordPiece("##", cleanup=False), trainer=dict(vocab_size=400, special_tokens=["<unk>"], continuing_subword_prefix="##"), unk_token="<unk>", continuing_subword_prefix="##")

    # WordPiece
    for name, lower in ("bert-uncased", True), ("bert-cased", False):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece("##")
        t.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=500, special_tokens=special("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), show_progress=False, limit_alphabet=120))
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)) if lower else processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        yield name, t
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    t.normalizer, t.pre_tokenizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip(), normalizers.Nmt()]), pre_tokenizers.Whitespace()
    t.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False, limit_alphabet=80))
    yield "wordpiece-bare", t
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.FixedLength(4)])
    t.train_from_iterator(lines(), trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False))
    yield "wordlevel", t

    # Unigram
    rules, pieces = charsmap()
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(rules), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="always"), decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    t.add_special_tokens([AddedToken("<s>", special=True, normalized=False), AddedToken("</s>", special=True, normalized=False), AddedToken("[MASK]", lstrip=True, special=True, normalized=False)])
    yield "t5", t
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + [("<0x%02X>" % i, -12.0) for i in range(256)] + pieces[3:]
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first"), decoders.Fuse()])
    t.add_special_tokens(special("<s>", "</s>"))
    yield "unigram-bytes", t
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]), decoders.Metaspace()
    t.train_from_iterator(lines(), trainers.UnigramTrainer(vocab_size=300, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False))
    yield "unigram-hf", t


def llama2(t, post):
    """The byte tokens are ordinary ones, as in Llama 2; only the first three are special."""
    d = json.loads(t.to_str())
    d["added_tokens"] = [a for a in d["added_tokens"] if a["id"] < 3]
    t = Tokenizer.from_str(json.dumps(d))
    t.post_processor = post
    return t


def rows(name, t, texts):
    for text in texts:
        ids, ids_special = t.encode(text, add_special_tokens=False).ids, t.encode(text).ids
        row = {"tokenizer": name, "text": text, "ids": ids}
        if ids_special != ids:
            row["ids_special"] = ids_special
        row["decoded"] = t.decode(ids_special, skip_special_tokens=False)
        skipped = t.decode(ids_special, skip_special_tokens=True)
        if skipped != row["decoded"]:
            row["skipped"] = skipped
        yield row


def openai(folder, texts):
    import tiktoken
    import tiktoken.load
    import tiktoken_ext.openai_public as public

    def local(url, expected_hash=None):
        with open(os.path.join(folder, os.path.basename(url)), "rb") as f:
            return {base64.b64decode(t): int(r) for t, r in (line.split() for line in f if line.strip())}

    public.load_tiktoken_bpe = local
    for name in "o200k", "cl100k":
        e = tiktoken.Encoding(**getattr(public, name + "_base")())
        for text in texts:
            ids = e.encode(text, allowed_special="all")
            yield {"tokenizer": "builtin:" + name, "text": text, "ids": ids, "decoded": e.decode(ids)}


def pack(path, data):
    with open(path, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as f:
        f.write(data)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    found, texts = [], TEXTS + random_texts(120)
    for name, t in kinds():
        found += rows(name, t, texts)
        pack(os.path.join(out, name + ".json.gz"), json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")).encode())
    if len(sys.argv) > 2:
        found += openai(sys.argv[2], texts)
    pack(os.path.join(out, "vectors.jsonl.gz"), "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in found).encode())
    print(f"{len(found)} vectors, tokenizers {tokenizers.__version__}")


main()
