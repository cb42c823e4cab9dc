package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"image"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Pictures have the asked number, size and kind, and no two are alike.
func TestImages(t *testing.T) {
	for _, kind := range []string{"png", "jpeg"} {
		seen := map[string]bool{}
		c := Config{Spec: bench.Workload{ISL: "20", OSL: "5", Images: "uniform:1,3", ImageSize: "uniform:30,60x17", ImageType: kind}, Maker: text, Seed: 3, Chat: true}
		number := map[int]bool{}
		for _, q := range take(t, Images{}, c, 20) {
			var parts []struct {
				Type, Text string
				URL        struct{ URL string } `json:"image_url"`
			}
			if err := json.Unmarshal(q.Messages[0].Content, &parts); err != nil {
				t.Fatal(err)
			}
			if len(strings.Fields(parts[0].Text)) != 20-text.Overhead || q.OSL != 5 {
				t.Errorf("text %q", parts[0].Text)
			}
			number[len(parts)-1] = true
			for _, p := range parts[1:] {
				raw, ok := strings.CutPrefix(p.URL.URL, "data:image/"+kind+";base64,")
				if !ok || seen[raw] {
					t.Fatalf("%.40s: known %v", p.URL.URL, seen[raw])
				}
				seen[raw] = true
				b, err := base64.StdEncoding.DecodeString(raw)
				if err != nil {
					t.Fatal(err)
				}
				m, is, err := image.Decode(bytes.NewReader(b))
				if err != nil || is != kind || m.Bounds().Dx() < 30 || m.Bounds().Dx() > 60 || m.Bounds().Dy() != 17 {
					t.Errorf("%s, %v, %v", is, err, m.Bounds())
				}
			}
		}
		if len(number) != 3 {
			t.Errorf("numbers of pictures %v", number)
		}
	}
	for _, w := range []bench.Workload{{Images: "0", ImageSize: "1x1", ImageType: "png"}, {Images: "1", ImageSize: "5", ImageType: "png"}, {Images: "1", ImageSize: "99999x1", ImageType: "png"}, {Images: "1", ImageSize: "5x5", ImageType: "gif"}} {
		w.ISL, w.OSL = "5", "5"
		if _, err := (Images{}).Open(Config{Spec: w}); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

func TestImagesGolden(t *testing.T) {
	h := fnv.New64a()
	for _, q := range take(t, Images{}, Config{Spec: bench.Workload{ISL: "20", OSL: "5", Images: "2", ImageSize: "33x40", ImageType: "png"}, Maker: text, Seed: 7}, 10) {
		fmt.Fprintf(h, "%s %d\n", q.Messages[0].Content, q.OSL)
	}
	if h.Sum64() != 0xdeaba55f9a3eefcd { // as Go 1.26 compresses
		t.Errorf("hash %#x", h.Sum64())
	}
}
