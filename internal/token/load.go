package token

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// mostBytes bounds a tokenizer.json, also when unpacked: the largest at hand has 33 MB.
const mostBytes = 512 << 20

// Parse reads the bytes of a tokenizer.json.
func Parse(b []byte) (*Tokenizer, error) {
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	p.digest = digest(b)
	return build("", p)
}

// Load reads a tokenizer.json, or one packed by gzip. Where cache is a directory, the tables are kept there in a form that is read many
// times faster, under the digest of the file; a cache that cannot be used is no error.
func Load(path, cache string) (*Tokenizer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := digest(b)
	kept := filepath.Join(cache, sum+".tok")
	if cache != "" {
		if p, err := readParts(kept); err == nil && p.digest == sum {
			if t, err := build(path, p); err == nil {
				return t, nil
			}
		}
	}
	if b, err = unpack(b); err != nil {
		return nil, err
	}
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	p.digest = sum
	t, err := build(path, p)
	if err == nil && cache != "" {
		_ = writeParts(kept, p) // without it, the next time takes as long as this one
	}
	return t, err
}

// Background loads a tokenizer while others work; the function that it returns waits for it.
func Background(load func() (*Tokenizer, error)) func() (*Tokenizer, error) {
	get := sync.OnceValues(load)
	go get() // whoever waits gets what it returns
	return get
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func unpack(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	b, err = io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(b) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes", mostBytes)
	}
	return b, err
}

var errBroken = errors.New("a broken cache")
