package opt

import (
	"encoding/json"
	"testing"
)

func TestOf(t *testing.T) {
	type s struct {
		A Of[int] `json:"a,omitzero"`
		B Of[int] `json:"b"`
	}
	for _, c := range []struct {
		v    s
		want string
	}{{s{}, `{"b":null}`}, {s{Some(0), Some(5)}, `{"a":0,"b":5}`}} {
		b, err := json.Marshal(c.v)
		if err != nil || string(b) != c.want {
			t.Errorf("%s %v, want %s", b, err, c.want)
		}
		var back s
		if err := json.Unmarshal(b, &back); err != nil || back != c.v {
			t.Errorf("%+v %v", back, err)
		}
	}
	if v, ok := (Of[int]{}).Get(); v != 0 || ok || (Of[int]{}).Or(7) != 7 || Some(3).Or(7) != 3 || !Some(0).Defined() {
		t.Error("values")
	}
	var x Of[int]
	if json.Unmarshal([]byte(`"no"`), &x) == nil || x.Defined() {
		t.Error("a word for a number")
	}
}
