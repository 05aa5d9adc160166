package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"reprise/internal/loop"
	"reprise/internal/loop/tell"
)

// traced lets a loop tell of its iterations to the collector that OpenTelemetry's
// variables name, where they name one. What it returns sends the rest.
func (a *App) traced(opt *loop.Options) (func(), error) {
	o, err := tell.OTLPFromEnv(a.Env.Get, opt.Project)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if o == nil {
		return func() {}, nil
	}
	o.Resource["service.version"] = Version()
	o.Post = postOTLP
	o.Warn = func(err error) { opt.Log.Warn("OpenTelemetry", "error", err.Error()) }
	o.Start()
	opt.Trace = o.Send
	return o.Close, nil
}

// postOTLP is one request to a collector. Which answers are worth another try is the
// protocol's: https://opentelemetry.io/docs/specs/otlp/#failures.
func postOTLP(ctx context.Context, url string, header map[string]string, body []byte) (retry bool, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "reprise/"+Version())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return true, 0, err
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // for the message only
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return false, 0, nil
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		after = time.Duration(s) * time.Second
	}
	return retry, after, fmt.Errorf("it answered %s: %s", res.Status, firstLine(string(said), 200))
}
