package client

import (
	"testing"
	"time"
)

func TestDelays(t *testing.T) {
	var d delays
	if d.quantile(0.99) != 0 {
		t.Error("a quantile of nothing")
	}
	for i := 1; i <= 1000; i++ {
		d.add(time.Duration(i) * time.Microsecond)
	}
	d.add(0)
	d.add(100 * time.Hour)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 500 * time.Microsecond}, {0.99, 990 * time.Microsecond}, {0, time.Microsecond}} {
		if got := d.quantile(c.q); got < c.want || float64(got) > 1.1*float64(c.want) {
			t.Errorf("quantile %v is %v, want %v to +10 %%", c.q, got, c.want)
		}
	}
}
