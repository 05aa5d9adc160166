package tell

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is a piece of work with its time, as OpenTelemetry knows it. Names and attributes
// are those of its conventions for generative AI where these have one, and begin with
// "reprise." where they do not. It says nothing of what a task, a model or a tool said.
type Span struct {
	Trace      [16]byte // of the iteration: the same whenever and by whomever it is told
	ID, Parent [8]byte  // Parent is zero for the iteration itself
	Name       string
	Start, End time.Time
	Attributes []Attribute
	Error      string // class of the failure, "" where there was none
}

// Attribute is a name with a value, which is a string, bool, int64 or float64.
type Attribute struct {
	Name  string
	Value any
}

// OTLP sends spans to a collector, in the JSON form of OpenTelemetry's protocol over
// HTTP, which every collector takes at the address at which it takes the binary form.
// (The protocol's own Go packages add milliseconds to the start of every reprise
// command, and say no more.)
type OTLP struct {
	URL      string
	Header   map[string]string
	Resource map[string]string // attributes of what sends, such as service.name
	Timeout  time.Duration     // for one request
	// Post sends a request; retry is true where asking again later may help, after,
	// when it is not zero, how long the collector wants to be left alone.
	Post func(ctx context.Context, url string, header map[string]string, body []byte) (retry bool, after time.Duration, err error)
	// Warn is told what could not be sent.
	Warn func(error)

	spans chan []Span
	done  chan struct{}
	stop  chan struct{}
}

// Bounds of what waits to be sent, and of how often that is tried.
const (
	otlpWaiting = 256 // iterations
	otlpTries   = 4
	otlpPatient = 5 * time.Second
)

// OTLPFromEnv reads the variables that OpenTelemetry defines; nil without an error means
// that no endpoint is set, or that it is switched off. get is the environment.
func OTLPFromEnv(get func(string) string, project string) (*OTLP, error) {
	first := func(names ...string) (string, string) {
		for _, n := range names {
			if v := strings.TrimSpace(get(n)); v != "" {
				return n, v
			}
		}
		return "", ""
	}
	if strings.EqualFold(strings.TrimSpace(get("OTEL_SDK_DISABLED")), "true") {
		return nil, nil
	}
	if _, v := first("OTEL_TRACES_EXPORTER"); v != "" && !slices.Contains(strings.Split(v, ","), "otlp") {
		return nil, nil
	}
	const traces, all = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	name, where := first(traces+"ENDPOINT", all+"ENDPOINT")
	if where == "" {
		return nil, nil
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s is no http or https address: %q", name, Clip(where, 200))
	}
	if name == all+"ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	if pname, p := first(traces+"PROTOCOL", all+"PROTOCOL"); p == "grpc" {
		return nil, fmt.Errorf("%s is grpc: reprise sends over HTTP only; give the collector's HTTP endpoint (port 4318) and http/json", pname)
	}
	o := &OTLP{URL: u.String(), Header: map[string]string{"Content-Type": "application/json"}, Resource: map[string]string{}, Timeout: 10 * time.Second}
	hname, headers := first(traces+"HEADERS", all+"HEADERS")
	if err := pairs(headers, o.Header); err != nil {
		return nil, fmt.Errorf("%s: %w", hname, err)
	}
	if err := pairs(get("OTEL_RESOURCE_ATTRIBUTES"), o.Resource); err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if o.Resource["service.name"] == "" {
		o.Resource["service.name"] = "reprise"
	}
	if _, v := first("OTEL_SERVICE_NAME"); v != "" {
		o.Resource["service.name"] = v
	}
	if o.Resource["service.namespace"] == "" {
		o.Resource["service.namespace"] = project
	}
	if tname, v := first(traces+"TIMEOUT", all+"TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s is %q, and must be milliseconds", tname, Clip(v, 40))
		}
		o.Timeout = time.Duration(ms) * time.Millisecond
	}
	return o, nil
}

// pairs reads "a=b,c=d", whose values may be percent-encoded.
func pairs(text string, into map[string]string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		k, v, ok := strings.Cut(part, "=")
		v, err := url.PathUnescape(strings.TrimSpace(v))
		if k = strings.TrimSpace(k); !ok || k == "" || err != nil {
			return errors.New("it is no list of NAME=VALUE with commas between")
		}
		into[k] = v
	}
	return nil
}

// Start begins to send what it is given; Close ends that.
func (o *OTLP) Start() {
	o.spans, o.done, o.stop = make(chan []Span, otlpWaiting), make(chan struct{}), make(chan struct{})
	go o.run()
}

// Send takes the spans of an iteration and does not wait until they are sent. It fails
// where too many wait.
func (o *OTLP) Send(_ context.Context, spans []Span) error {
	select {
	case o.spans <- spans:
		return nil
	default:
		return fmt.Errorf("%d iterations wait to be sent to %s: this one is left out", otlpWaiting, o.URL)
	}
}

// Close sends what waits, and gives that up after five seconds. Nothing may be sent after
// that.
func (o *OTLP) Close() {
	close(o.spans)
	t := time.NewTimer(otlpPatient)
	defer t.Stop()
	select {
	case <-o.done:
	case <-t.C:
		close(o.stop)
		<-o.done
	}
}

func (o *OTLP) run() {
	defer close(o.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-o.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for spans := range o.spans {
		for more := true; more && len(spans) < 2000; { // what waits goes together
			select {
			case s, ok := <-o.spans:
				spans, more = append(spans, s...), ok
			default:
				more = false
			}
		}
		if err := o.deliver(ctx, spans); err != nil && o.Warn != nil {
			o.Warn(fmt.Errorf("%d spans are not sent to %s: %w", len(spans), o.URL, err))
		}
	}
}

// deliver sends spans, again after a while where that may help.
func (o *OTLP) deliver(ctx context.Context, spans []Span) error {
	body, err := EncodeOTLP(o.Resource, spans)
	if err != nil {
		return err
	}
	wait := 500 * time.Millisecond
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, o.Timeout)
		retry, after, err := o.Post(one, o.URL, o.Header, body)
		cancel()
		if err == nil || !retry || try == otlpTries || ctx.Err() != nil {
			return err
		}
		t := time.NewTimer(min(max(wait, after), time.Minute))
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
		wait *= 4
	}
}

// The form of OTLP's JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
type (
	otlpAttr struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
	otlpSpan struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Parent     string     `json:"parentSpanId,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []otlpAttr `json:"attributes,omitempty"`
		Status     otlpStatus `json:"status"`
	}
	otlpStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
)

const (
	otlpInternal = 1 // SPAN_KIND_INTERNAL
	otlpOK       = 1
	otlpError    = 2
)

// EncodeOTLP is an ExportTraceServiceRequest with these spans.
func EncodeOTLP(resource map[string]string, spans []Span) ([]byte, error) {
	list := make([]otlpSpan, len(spans))
	for i, s := range spans {
		list[i] = otlpSpan{
			TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: otlpInternal,
			Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.End.UnixNano(), 10), Status: otlpStatus{Code: otlpOK},
		}
		if s.Parent != [8]byte{} {
			list[i].Parent = hex.EncodeToString(s.Parent[:])
		}
		if s.Error != "" {
			list[i].Status = otlpStatus{otlpError, s.Error}
		}
		for _, a := range s.Attributes {
			list[i].Attributes = append(list[i].Attributes, otlpAttr{a.Name, otlpValue(a.Value)})
		}
	}
	var about []otlpAttr
	for _, k := range slices.Sorted(maps.Keys(resource)) {
		about = append(about, otlpAttr{k, otlpValue(resource[k])})
	}
	type m = map[string]any
	return json.Marshal(m{"resourceSpans": []m{{
		"resource":   m{"attributes": about},
		"scopeSpans": []m{{"scope": m{"name": "reprise/internal/loop"}, "spans": list}},
	}}})
}

func otlpValue(v any) map[string]any {
	switch v := v.(type) {
	case bool:
		return map[string]any{"boolValue": v}
	case int64:
		return map[string]any{"intValue": strconv.FormatInt(v, 10)}
	case float64:
		return map[string]any{"doubleValue": v}
	}
	return map[string]any{"stringValue": fmt.Sprint(v)}
}
