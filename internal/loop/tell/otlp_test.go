package tell

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A collector that hangs or is not there holds nothing up.
func TestOTLPThatHangs(t *testing.T) {
	hang := make(chan struct{})
	dead := &OTLP{URL: "http://127.0.0.1:1/v1/traces", Timeout: time.Hour, Post: func(ctx context.Context, _ string, _ map[string]string, _ []byte) (bool, time.Duration, error) {
		select {
		case <-ctx.Done():
		case <-hang:
		}
		return true, 0, errors.New("nobody")
	}}
	dead.Start()
	full := false
	for range 10 * otlpWaiting {
		full = dead.Send(t.Context(), nil) != nil || full
	}
	if !full {
		t.Error("what cannot be sent is kept without bound")
	}
	close(hang)
	close(dead.spans)
	close(dead.stop)
	<-dead.done
}
