package term

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Num(0): "0", Num(999): "999", Num(1000): "1\u202f000", Num(-1234567): "-1\u202f234\u202f567", Num(-123): "-123",
		Plural(1, "run"): "1 run", Plural(0, "run"): "0 runs", Plural(5000, "task"): "5\u202f000 tasks",
		USD(0): "0", USD(0.004): "0.0040", USD(12.345): "12.35", USD(-3): "-3.00",
		Took(0): "0 ms", Took(2700 * time.Millisecond): "2.7 s", Took(3 * time.Second): "3 s", Took(4 * time.Minute): "4 min", Took(61 * time.Second): "1 min 1 s",
		Took(8 * time.Hour): "8 h", Took(26*time.Hour + 5*time.Minute): "26 h 5 min", Took(72 * time.Hour): "3 days", Took(-time.Minute): "-1 min",
		Ago(2 * time.Second): "just now", Ago(11300 * time.Millisecond): "11 s ago", Ago(90 * time.Second): "1 min ago", Ago(18*time.Hour + 30*time.Minute): "18 h ago",
		Ago(49 * time.Hour): "2 days ago", Ago(-time.Hour): "in 1 h",
		Size(1): "1 byte", Size(1023): "1\u202f023 bytes", Size(1536): "1.5 KiB", Size(5 << 20): "5.0 MiB", Size(3 << 30): "3.0 GiB",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
