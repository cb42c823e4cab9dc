package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/jpeg"
	"image/png"
	"iter"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Images is the data set `images`: chats of a text of --isl tokens with --images made pictures of --image-size pixels, as data URLs. No
// two pictures are alike, so that no cache of the server's has them.
type Images struct{}

// Name implements Dataset.
func (Images) Name() string { return "images" }

// Invents implements Inventor.
func (Images) Invents() {}

// Bounds of what is made.
const (
	mostImages = 256
	mostPixels = 8192 // of a side
	tile       = 16   // pixels of the side of a patch of one colour
	quality    = 85   // of a JPEG
)

// Open implements Dataset.
func (Images) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	w := c.Spec
	if w.Path != "" || w.Prompt != "" {
		return nil, fault.New(fault.Usage, "the data set images takes neither a file nor a prompt", "it makes its pictures; for your own use --dataset jsonl with messages")
	}
	if c.Text || c.inputs() || c.Task.Defined() && !c.Chat {
		return nil, fault.New(fault.Usage, "pictures are sent in messages", "use --endpoint chat")
	}
	counts, err := ParseLaw(w.Images)
	if err != nil {
		return nil, err
	}
	widths, heights, err := imageSize(w.ImageSize)
	if err != nil {
		return nil, err
	}
	if w.ImageType != "png" && w.ImageType != "jpeg" {
		return nil, fault.Usagef("such as --image-type jpeg", "--image-type is png or jpeg, not %q", w.ImageType)
	}
	law, err := pairs(c)
	if err != nil {
		return nil, err
	}
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		pixels := rng.New(c.Seed, c.stretch("workload/pixels"))
		offset := c.offset()
		for i := 0; ; i++ {
			n, out, class := law.Draw(r)
			q := bench.Request{OSL: out, Class: class}
			c.Maker.Make(&q, n, c.number(offset, i), r)
			parts := []map[string]any{{"type": "text", "text": q.Prompt}}
			q.Prompt = ""
			for range min(mostImages, counts.Draw(r)) {
				url, err := picture(min(mostPixels, widths.Draw(r)), min(mostPixels, heights.Draw(r)), w.ImageType, pixels)
				if err != nil {
					yield(q, err)
					return
				}
				parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
			}
			content, err := json.Marshal(parts)
			if err != nil {
				yield(q, err)
				return
			}
			q.Messages = []bench.Message{{Role: "user", Content: content}}
			if !yield(q, nil) {
				return
			}
		}
	}, nil
}

// imageSize reads WIDTHxHEIGHT, each a law of lengths in pixels.
func imageSize(s string) (w, h Law, err error) {
	a, b, two := strings.Cut(s, "x")
	if !two {
		return nil, nil, fault.Usagef("such as --image-size 512x512, or uniform:256,1024xuniform:256,1024", "--image-size %q is not WIDTHxHEIGHT", s)
	}
	if w, err = ParseLaw(a); err == nil {
		h, err = ParseLaw(b)
	}
	for _, l := range []Law{w, h} {
		if err == nil && l.Mean() > mostPixels {
			err = fault.Usagef("such as --image-size 512x512", "--image-size %q is above %d pixels", s, mostPixels)
		}
	}
	return w, h, err
}

// picture makes a picture of patches of random colours, as a data URL.
func picture(w, h int, kind string, r *rng.Stream) (string, error) {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	across := (w + tile - 1) / tile
	row := make([]uint64, across)
	for y := range h {
		if y%tile == 0 {
			for i := range row {
				row[i] = r.Uint64()
			}
		}
		for x := range w {
			c := row[x/tile]
			at := m.PixOffset(x, y)
			m.Pix[at], m.Pix[at+1], m.Pix[at+2], m.Pix[at+3] = byte(c), byte(c>>8), byte(c>>16), 0xff
		}
	}
	var b bytes.Buffer
	var err error
	if kind == "jpeg" {
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
	} else {
		err = png.Encode(&b, m)
	}
	return "data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(b.Bytes()), err
}
