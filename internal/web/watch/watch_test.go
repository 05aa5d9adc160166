package watch

import (
	"context"
	"testing"
	"time"
)

// Looking costs no more than a thousandth of the time, unless there is very much to look at.
func TestRestAfterALook(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: lookEvery, time.Microsecond: lookEvery, time.Millisecond: time.Second, 3 * time.Millisecond: 3 * time.Second, time.Second: restMost} {
		if got := rest(took); got != want {
			t.Errorf("after a look of %s it rests %s, want %s", took, got, want)
		}
	}
}

// With nobody there, nothing is looked at.
func TestNobodyListensNobodyLooks(t *testing.T) {
	looks := make(chan struct{}, 100)
	w := New(time.Now, []Source{{"x", func(*Look) { looks <- struct{}{} }}})
	_, leave := w.Listen(context.Background())
	<-looks // the first, to compare with
	leave()
	deadline := time.Now().Add(time.Minute)
	for {
		w.mu.Lock()
		looking := w.looking
		w.mu.Unlock()
		if !looking {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it still looks, and nobody listens")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(looks) != 0 {
		t.Errorf("it looked %d times after the last had left", len(looks))
	}
}
