package profile

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var samples = []string{"10", "linear:0,50,10s", "linear:50,5,10s", "exp:1,100,20s", "exp:100,1,20s", "steps:5,0,20,1/3s", "bursts:40,2s,0,5s",
	"bursts:0,2s,7,5s", "sine:10,10,60s", "sine:10,4,1m", "pieces:0=5,10s=20,30s=0,40s=2"}

// The area is the integral of the level, and When is its inverse.
func TestAreaAndInverse(t *testing.T) {
	for _, s := range samples {
		p, err := Parse(s)
		if err != nil {
			t.Fatal(s, err)
		}
		const step = 100 * time.Microsecond
		sum := 0.0
		for at := time.Duration(0); at < 50*time.Second; at += step {
			sum += p.At(at+step/2) * step.Seconds()
			if at%(7*time.Second) == 0 {
				if a := p.Area(at + step); math.Abs(a-sum) > 1e-4*(1+sum) {
					t.Errorf("%s: area %v at %v, the sum is %v", s, a, at, sum)
				}
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			a := rapid.Float64Range(0, p.Area(200*time.Second)).Draw(t, "area")
			w := p.When(a)
			if back := p.Area(time.Duration(math.Round(w * 1e9))); math.Abs(back-a) > 1e-6*(1+p.Peak()) {
				t.Fatalf("%s: area %v is at %v s, where it is %v", s, a, w, back)
			}
			if later := p.When(a + 0.1); later < w {
				t.Fatalf("%s: %v s comes before %v s", s, later, w)
			}
		})
	}
}

func TestReaches(t *testing.T) {
	for _, c := range []struct {
		s     string
		from  time.Duration
		level float64
		want  time.Duration
		ok    bool
	}{
		{"linear:1,5,4s", 0, 1, 0, true}, {"linear:1,5,4s", 0, 3, 2 * time.Second, true}, {"linear:1,5,4s", 3 * time.Second, 3, 3 * time.Second, true},
		{"linear:1,5,4s", 0, 5, 4 * time.Second, true}, {"linear:1,5,4s", 0, 6, 0, false}, {"exp:1,16,4s", 0, 8, 3 * time.Second, true},
		{"steps:1,2,4/10s", 0, 3, 20 * time.Second, true}, {"bursts:4,1s,0,2s", 1500 * time.Millisecond, 4, 3 * time.Second, true},
		{"linear:5,1,4s", 2 * time.Second, 4, 0, false}, {"sine:5,5,8s", 0, 10, 2 * time.Second, true}, {"sine:5,5,8s", 3 * time.Second, 10, 10 * time.Second, true},
	} {
		p, _ := Parse(c.s)
		got, ok := p.Reaches(c.from, c.level)
		if ok != c.ok || (got-c.want).Abs() > time.Microsecond {
			t.Errorf("%s from %v reaches %v at %v, %v; want %v, %v", c.s, c.from, c.level, got, ok, c.want, c.ok)
		}
	}
}

func TestFile(t *testing.T) {
	got, err := FromFile(strings.NewReader("start,rate\n0,5 # begin\n\n10s\t20\n1m 0\n"))
	if want := "pieces:0s=5,10s=20,1m0s=0"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := Parse(got); err != nil {
		t.Error(err)
	}
	for in, want := range map[string]string{"": "no line", "0,5\n10,x\n": "line 2", "0 5\nabc 5\n": "line 2", "0 5 6\n": "3 fields"} {
		if _, err := FromFile(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, s := range []string{"", "x", "-1", "nan", "linear:1,2", "linear:1,2,0s", "linear:0,0,5s", "exp:0,5,1s", "steps:1,2", "steps:/5s", "bursts:1,1s,2", "sine:1,2,5s",
		"pieces:5s=1", "pieces:0=1,0=2", "pieces:0=1,5", "square:1,2", "linear:1,inf,5s", "linear:1,2,1e300"} {
		if p, err := Parse(s); err == nil {
			t.Errorf("%q gives %+v", s, p)
		}
	}
}
