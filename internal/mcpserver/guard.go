package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxMessage is the most bytes of one incoming message, over stdio as over
	// HTTP. The largest value a tool takes is the 4 MiB of append_file; text whose
	// escapes make it longer than this is refused with a word to send less.
	maxMessage = 8 << 20

	// drainTime is how long the end of input waits for answers under way, so
	// that `printf '…' | reprise mcp` is answered, and still leaves the server
	// gone within a second.
	drainTime = 400 * time.Millisecond

	// maxCalls bounds the calls under way at once over stdio. Clients send a
	// handful; without a bound, one that does not read its answers has them
	// pile up here.
	maxCalls = 4096

	// refusalTime is how long a refusal waits for others to be written.
	refusalTime = time.Second

	// codeBusy is of the range that JSON-RPC leaves to servers.
	codeBusy = -32000

	// edge is how much of each end of an over-long line is kept, to find the id
	// of the request that it was.
	edge = 4 << 10
)

// stdioGuard is the transport in front of the SDK: it reads lines itself,
// answers what is not a message and goes on, where the SDK's own would end the
// session.
type stdioGuard struct {
	in    io.Reader
	out   io.Writer
	limit int           // bytes of a line
	drain time.Duration // at the end of input
	most  int           // calls under way at once
	known func(method string) bool

	conn *guardConn // the one connection, once made
}

// Connect implements mcp.Transport.
func (g *stdioGuard) Connect(context.Context) (mcp.Connection, error) {
	if g.conn != nil {
		return nil, errors.New("connect stdio: already connected")
	}
	c := &guardConn{
		out: g.out, limit: g.limit, drain: g.drain, most: g.most, known: g.known,
		lines: make(chan line), closed: make(chan struct{}), over: make(chan struct{}),
		failed: make(chan struct{}), refusals: make(chan []byte, 256),
		inUse: make(map[any]bool), idle: make(chan struct{}, 1),
	}
	g.conn = c
	// Reading from a terminal or pipe cannot be interrupted, so it has its own
	// goroutine, which ends with its input or with the process.
	go c.readLines(g.in)
	go c.writeRefusals()
	return c, nil
}

// line is one line of input. A line over the limit has only its ends.
type line struct {
	data  []byte
	over  bool
	total int64
	err   error // the input has ended
}

type guardConn struct {
	limit int
	drain time.Duration
	most  int
	known func(string) bool

	lines     chan line
	closed    chan struct{}
	closeOnce sync.Once
	over      chan struct{} // closed when the input has ended and the calls had their time
	overOnce  sync.Once

	writeMu sync.Mutex
	out     io.Writer
	broken  error
	failed  chan struct{} // closed when broken is set

	refusals chan []byte
	stuck    bool // Read's own: nobody takes refusals

	mu      sync.Mutex
	inUse   map[any]bool // ids of calls without an answer yet
	running int          // calls whose answer is not written yet
	owed    int          // refusals not written yet
	idle    chan struct{}
}

func (c *guardConn) SessionID() string { return "" }

func (c *guardConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

func (c *guardConn) readLines(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(r, c.limit)
		if l.err != nil && l.total == 0 {
			l.data = nil
		}
		if len(l.data) > 0 || l.over {
			keep := l
			keep.err = nil
			if !c.hand(keep) {
				return
			}
		}
		if l.err != nil {
			c.hand(line{err: l.err})
			return
		}
	}
}

func (c *guardConn) hand(l line) bool {
	select {
	case c.lines <- l:
		return true
	case <-c.closed:
		return false
	}
}

// readLine reads up to a newline or the end of input and holds at most limit
// bytes, whatever comes.
func readLine(r *bufio.Reader, limit int) line {
	var l line
	var tail []byte
	for {
		part, err := r.ReadSlice('\n')
		l.total += int64(len(part))
		if !l.over && len(l.data)+len(part) > limit {
			l.over = true
			if len(l.data) > edge {
				tail = append(tail, l.data[len(l.data)-edge:]...)
				l.data = l.data[:edge:edge]
			}
		}
		if l.over {
			tail = append(tail, part...)
			if len(tail) > 2*edge {
				tail = append(tail[:0], tail[len(tail)-edge:]...)
			}
		} else {
			l.data = append(l.data, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.err = err
		if l.over {
			l.data = append(append(bytes.Clone(l.data), '\n'), tail...)
		}
		return l
	}
}

// Read implements mcp.Connection. It returns only whole, valid messages; what
// is none is answered here.
func (c *guardConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-c.lines:
		case <-c.closed:
			return nil, io.EOF
		case <-c.failed:
			return nil, c.broken // set before failed was closed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err != nil {
			c.awaitAnswers(ctx)
			c.overOnce.Do(func() { close(c.over) })
			if errors.Is(l.err, io.EOF) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("read standard input: %w", l.err)
		}
		msg, refused := c.parse(l)
		if refused != nil {
			if err := c.answer(refused); err != nil {
				return nil, err
			}
			continue
		}
		if msg == nil {
			continue // an empty line
		}
		if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
			if refused := c.enter(req.ID.Raw()); refused != nil {
				if err := c.answer(refused); err != nil {
					return nil, err
				}
				continue
			}
		}
		return msg, nil
	}
}

// enter counts a call, or says why it cannot be made now.
func (c *guardConn) enter(id any) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse[id] {
		// The SDK would drop it without a word. The null id is JSON-RPC's for
		// this: an error with the call's own would be taken for the answer to
		// the other one.
		return refuse(nil, jsonrpc.CodeInvalidRequest, "a call with the id %v is under way: give each call an id of its own", id)
	}
	if c.running >= c.most {
		raw, err := encodeJSON(id)
		if err != nil {
			raw = nil // an id is a string or a number: cannot happen
		}
		return refuse(raw, codeBusy, "%d calls are under way, which is the most: read their answers before you send more", c.most)
	}
	c.running++
	c.inUse[id] = true
	return nil
}

// answer has a refusal written. It does not wait for that: a client that does
// not read would keep us from seeing that its input has ended. To such a client
// refusals get lost.
func (c *guardConn) answer(r *refusal) error {
	data, err := r.encode()
	if err != nil {
		return fmt.Errorf("encode refusal: %w", err)
	}
	c.mu.Lock()
	c.owed++
	c.mu.Unlock()
	select {
	case c.refusals <- data:
		c.stuck = false
		return nil
	default:
	}
	wait := refusalTime
	if c.stuck {
		wait = 0
	}
	select {
	case c.refusals <- data:
		c.stuck = false
	case <-time.After(wait):
		c.stuck = true
		c.paid()
	case <-c.failed:
		return c.broken // set before failed was closed
	case <-c.closed:
		return io.EOF
	}
	return nil
}

func (c *guardConn) writeRefusals() {
	for {
		select {
		case data := <-c.refusals:
			_ = c.writeLine(data) // Read sees it in failed
			c.paid()
		case <-c.closed:
			return
		}
	}
}

func (c *guardConn) paid() {
	c.mu.Lock()
	c.owed--
	c.mu.Unlock()
	c.wake()
}

// wake makes awaitAnswers count again.
func (c *guardConn) wake() {
	select {
	case c.idle <- struct{}{}:
	default:
	}
}

// awaitAnswers gives calls under way a moment to be answered after the input
// has ended.
func (c *guardConn) awaitAnswers(ctx context.Context) {
	timer := time.NewTimer(c.drain)
	defer timer.Stop()
	for {
		c.mu.Lock()
		n := c.running + c.owed
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-timer.C:
			return
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// parse turns a line into a message, or into the answer that refuses it, or
// into neither for an empty line.
func (c *guardConn) parse(l line) (jsonrpc.Message, *refusal) {
	if l.over {
		return nil, refuse(findID(l.data), jsonrpc.CodeInvalidRequest,
			"message of %d bytes is over the limit of %d: send less at a time, for example several append_file calls", l.total, c.limit)
	}
	data := bytes.TrimPrefix(l.data, []byte("\xef\xbb\xbf")) // some Windows clients begin with a byte order mark
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil
	}
	if !json.Valid(data) {
		return nil, refuse(nil, jsonrpc.CodeParseError, "not a JSON text: each line must hold one whole JSON-RPC message")
	}
	if data[0] == '[' {
		return nil, refuse(nil, jsonrpc.CodeInvalidRequest, "batches are not part of this protocol: send one message a line")
	}
	_, msg, refused := parseMessage(data, c.known)
	return msg, refused
}

// parseMessage reads a JSON text as one message that the SDK takes, or says what is wrong with
// it. known is which methods may be called; nil is any.
func parseMessage(data []byte, known func(method string) bool) (envelope, jsonrpc.Message, *refusal) {
	if data[0] != '{' {
		return envelope{}, nil, refuse(nil, jsonrpc.CodeInvalidRequest, "a message must be a JSON object")
	}
	env, refused := parseEnvelope(data)
	if refused != nil {
		return env, nil, refused
	}
	if !utf8.Valid(data) && env.method != "tools/call" {
		// A tool call goes on: its handler can say which parameter it is.
		return env, nil, refuse(env.id, jsonrpc.CodeParseError, "the message is not valid UTF-8")
	}
	if env.isCall && known != nil && !known(env.method) {
		// Probes of other protocol eras wait for this answer, and before the
		// handshake the SDK would call it something else.
		return env, nil, refuse(env.id, jsonrpc.CodeMethodNotFound, "method not found: %q", shorten(env.method, 100))
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return env, nil, refuse(env.id, jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: %s", shorten(err.Error(), 200))
	}
	return env, msg, nil
}

// envelope is what the guard looks at before the SDK decodes a message.
type envelope struct {
	id     json.RawMessage // nil where there is none
	method string
	isCall bool
	bare   bool // has no parameters
}

func parseEnvelope(data []byte) (envelope, *refusal) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return envelope{}, refuse(nil, jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: %s", shorten(err.Error(), 200))
	}
	var e envelope
	id, hasID := m["id"]
	if hasID {
		if !validID(id) {
			return e, refuseID()
		}
		e.id = id
	}
	if v := string(m["jsonrpc"]); v != `"2.0"` {
		return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	}
	method, hasMethod := m["method"]
	if !hasMethod {
		_, result := m["result"]
		_, failure := m["error"]
		if !hasID || !result && !failure {
			return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `a message has a "method", or an "id" and a "result"`)
		}
		return e, nil // an answer to a request of ours
	}
	if err := json.Unmarshal(method, &e.method); err != nil {
		return e, refuse(e.id, jsonrpc.CodeInvalidRequest, `"method" must be a string`)
	}
	e.isCall = hasID
	e.bare = len(m["params"]) == 0 || string(m["params"]) == "null"
	return e, nil
}

func refuseID() *refusal {
	return refuse(nil, jsonrpc.CodeInvalidRequest, "id must be a string of at most 1024 bytes or a whole number below 2^53")
}

// validID accepts what can be given back unchanged: the SDK holds numbers as
// 64-bit floats on their way in.
func validID(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		// Half a surrogate pair is decoded to this, and cannot be given back.
		return len(v) <= 1024 && !strings.ContainsRune(v, utf8.RuneError)
	case float64:
		return v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return false
}

// idPattern is a request id in text that may be cut off on either side.
var idPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[{,]\s*"id"\s*:\s*("[^"\\]{0,200}"|-?[0-9]{1,15})\s*[,}]`)
})

// findID looks for the id at both ends of an over-long message: clients write
// it before or after the parameters. The last match wins only where the first
// kilobytes have none.
func findID(ends []byte) json.RawMessage {
	head, tail, _ := bytes.Cut(ends, []byte{'\n'})
	if m := idPattern().FindSubmatch(head); m != nil {
		return m[1]
	}
	if all := idPattern().FindAllSubmatch(tail, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return nil
}

// refusal answers what is no message. It is no jsonrpc.Response, because that
// cannot carry the null id which JSON-RPC demands when the request's own is
// not known.
type refusal struct {
	id   json.RawMessage // nil: not known
	code int64
	text string
}

func refuse(id json.RawMessage, code int64, format string, args ...any) *refusal {
	return &refusal{id: id, code: code, text: fmt.Sprintf(format, args...)}
}

func (a *refusal) encode() ([]byte, error) {
	id := a.id
	if id == nil {
		id = json.RawMessage("null")
	}
	return encodeJSON(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, &jsonrpc.Error{Code: a.code, Message: a.text}})
}

// Write implements mcp.Connection.
func (c *guardConn) Write(_ context.Context, msg jsonrpc.Message) error {
	if resp, ok := msg.(*jsonrpc.Response); ok {
		resp.Error = codedError(resp.Error)
		if c.free(resp.ID.Raw()) {
			defer c.settled()
		}
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return c.writeLine(data)
}

// writeLine writes one message as one line in one call. Whatever happens,
// nothing but whole messages reaches the output.
func (c *guardConn) writeLine(data []byte) error {
	data = append(data, '\n')
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	n, err := c.out.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		// After half a line no other may follow.
		c.broken = fmt.Errorf("write standard output: %w", err)
		close(c.failed)
	}
	return c.broken
}

// free gives an id back, before its answer is written: whoever reads that may
// use the id again at once. It reports whether the answer is one to a call.
func (c *guardConn) free(id any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.inUse[id]
	delete(c.inUse, id)
	return was
}

// settled counts an answer that was written.
func (c *guardConn) settled() {
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	c.wake()
}

// codedError gives an error that the SDK sends without a code (0, which no
// client knows) the code that fits.
func codedError(err error) error {
	if err == nil {
		return nil
	}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && wire.Code != 0 {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	switch {
	case notReady().MatchString(err.Error()):
		code = jsonrpc.CodeInvalidRequest
	case badParams().MatchString(err.Error()):
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

// badParams is the SDK's word for parameters of a wrong type, where it gives no
// code.
var badParams = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^handling '[^']*': (invalid params: )?unmarshaling `)
})

// notReady is the SDK's word for a call before the handshake; it has no type.
var notReady = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^method "[^"]*" is invalid during session initialization$`)
})

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// shorten cuts s to at most n runes and says that it did.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return fmt.Sprintf("%s… (%d more characters)", string(r[:n]), len(r)-n)
}
