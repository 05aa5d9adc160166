package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/durable"
	"reprise/internal/fleet"
	"reprise/internal/redact"
)

// Bounds of the copy of what runs say.
const (
	chunkBytes   = 128 << 10
	maxRunBytes  = 64 << 20 // of one run; of more the end
	maxRunChunks = 4096
	maxAllBytes  = 1 << 30 // of a project's runs together; the oldest go first
	minAllBytes  = 16 << 20
	maxAge       = 7 * 24 * time.Hour
	// pollEvery is how often a run's output is looked at.
	pollEvery = 250 * time.Millisecond
)

// Headers of a piece of output: where in the file on the worker's machine it begins and ends.
const (
	headFrom = "Reprise-From"
	headTo   = "Reprise-To"
	headEnd  = "Reprise-End" // the run has ended; the message is what is known of it
)

func (r *Relay) stream(ctx context.Context) (jetstream.Stream, error) {
	return fleet.GetOrMake(func() (jetstream.Stream, error) {
		return r.conn.JS.Stream(ctx, r.names.Output)
	}, func() (jetstream.Stream, error) {
		most, _ := r.shares(ctx)
		return asLarge(most, minAllBytes, func(most int64) (jetstream.Stream, error) {
			return r.conn.JS.CreateStream(ctx, jetstream.StreamConfig{
				Name: r.names.Output, Description: "what runs of reprise say", Subjects: []string{r.names.OutputSubject("*")},
				MaxBytes: most, MaxAge: maxAge, MaxMsgsPerSubject: maxRunChunks, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
				Replicas: r.conn.Replicas(), AllowDirect: true,
			})
		})
	})
}

// Mirror copies what a run says to the servers until it has ended, and then what end says of
// it. The file stays the truth: servers that are slow or away are tried again, from where
// they are, and hold up nobody but this copy. end returns nil while the run goes on. The
// error is that of ctx.
func (r *Relay) Mirror(ctx context.Context, run, file string, end func() []byte) error {
	m := mirror{r: r, run: run, file: file, end: end, clean: redact.New()}
	wait := pollEvery
	for {
		over, err := m.send(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case over:
			return nil
		case err != nil:
			m.known = false // the servers say where they are
			wait = min(2*wait, 30*time.Second)
		default:
			wait = pollEvery
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// mirror is the copy of one run's output.
type mirror struct {
	r         *Relay
	run, file string
	end       func() []byte
	clean     *redact.Redactor

	known bool   // where the servers are
	at    int64  // in the file
	seq   uint64 // of the last piece that they have
	over  bool   // they know that it has ended
}

// send sends all that there is; over says that nothing more will come.
func (m *mirror) send(ctx context.Context) (over bool, err error) {
	if !m.known {
		if err := m.locate(ctx); err != nil {
			return false, err
		}
	}
	if m.over {
		return true, nil
	}
	doc := m.end() // asked before the file is read: what was said before the end is then in it
	for {
		chunk, from, err := m.read(doc != nil)
		if err != nil {
			return false, err
		}
		if len(chunk) == 0 {
			break
		}
		to := from + int64(len(chunk))
		text, _ := m.clean.Bytes(chunk)
		if err := m.publish(ctx, map[string]string{headFrom: strconv.FormatInt(from, 10), headTo: strconv.FormatInt(to, 10)}, text); err != nil {
			return false, err
		}
		m.at = to
	}
	if doc == nil {
		return false, nil
	}
	err = m.publish(ctx, map[string]string{headEnd: "yes", headTo: strconv.FormatInt(m.at, 10)}, doc)
	return err == nil, err
}

// locate asks the servers how far they are.
func (m *mirror) locate(ctx context.Context) error {
	s, err := m.r.stream(ctx)
	if err != nil {
		return err
	}
	last, err := s.GetLastMsgForSubject(ctx, m.r.names.OutputSubject(m.run))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		m.at, m.seq = 0, 0
	case err != nil:
		return err
	default:
		m.seq, m.over = last.Sequence, last.Header.Get(headEnd) != ""
		if m.at, err = strconv.ParseInt(last.Header.Get(headTo), 10, 64); err != nil {
			return fmt.Errorf("read where the copy of %s is: %w", m.run, err)
		}
	}
	m.known = true
	return nil
}

// whole is how much of the beginning of a text may be looked at by itself, so that no secret
// is cut in two: whole lines, and nothing of a key of many lines whose end is not there. Of
// what is as long as a piece some is taken in any case, up to a character that no secret has
// where there is one.
func whole(text []byte) int {
	n := bytes.LastIndexByte(text, '\n') + 1
	if i := bytes.LastIndex(text[:n], []byte("-----BEGIN ")); i >= 0 && !bytes.Contains(text[i:n], []byte("-----END ")) {
		n = bytes.LastIndexByte(text[:i], '\n') + 1
	}
	if n > 0 || len(text) < chunkBytes {
		return n
	}
	if i := bytes.LastIndexByte(text, '\n') + 1; i > 0 {
		return i
	}
	end := text[len(text)-chunkBytes/8:]
	if i := bytes.LastIndexAny(end, " \t\",'"); i >= 0 {
		return len(text) - len(end) + i + 1
	}
	return len(text)
}

// read reads the next piece: whole lines, unless one is too long for a piece.
func (m *mirror) read(ended bool) (chunk []byte, from int64, err error) {
	f, err := durable.Open(m.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, m.at, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	from = max(m.at, info.Size()-maxRunBytes) // of more than the servers keep, the end
	buf := make([]byte, chunkBytes)
	n, err := f.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	buf = buf[:n]
	if from > m.at { // in the middle of a line
		i := bytes.IndexByte(buf, '\n') + 1
		buf, from = buf[i:], from+int64(i)
	}
	if more := !ended || from+int64(len(buf)) < info.Size(); more {
		buf = buf[:whole(buf)]
	}
	return buf, from, nil
}

// publish adds a message, if the servers are where they were thought to be: two who copy the
// same run, such as a worker and the one after it, send nothing twice.
func (m *mirror) publish(ctx context.Context, head map[string]string, data []byte) error {
	msg := nats.NewMsg(m.r.names.OutputSubject(m.run))
	for k, v := range head {
		msg.Header.Set(k, v)
	}
	msg.Data = data
	ack, err := m.r.conn.JS.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(m.seq))
	if err != nil {
		return err
	}
	m.seq = ack.Sequence
	return nil
}

// End is what the servers know of a run that has ended.
type End struct {
	Over bool
	Doc  json.RawMessage
}

// Piece is a part of what a run said: whole lines, but for lines longer than a piece.
type Piece struct {
	Seq      uint64 // its number on the servers, which grows
	From, To int64  // where it begins and ends in the run's file, in bytes
	Text     []byte // nil where only the places were asked for; secrets are out of it
}

// Pieces gives each the pieces that the servers have of what a run says, those after the
// number after; with follow until the run has ended, else what is there. quiet is called now
// and then while nothing comes; its error, or that of each, ends it. [ErrNotFound] where the
// servers have nothing of the run.
func (r *Relay) Pieces(ctx context.Context, run string, after uint64, follow bool, each func(Piece) error, quiet func() error) (End, error) {
	return r.pieces(ctx, run, jetstream.OrderedConsumerConfig{}, after, follow, each, quiet)
}

// Places are the pieces that there are now, without their text: where each begins and ends.
func (r *Relay) Places(ctx context.Context, run string) ([]Piece, End, error) {
	var out []Piece
	end, err := r.pieces(ctx, run, jetstream.OrderedConsumerConfig{HeadersOnly: true}, 0, false, func(p Piece) error {
		p.Text = nil
		out = append(out, p)
		return nil
	}, func() error { return nil })
	return out, end, err
}

func (r *Relay) pieces(ctx context.Context, run string, cfg jetstream.OrderedConsumerConfig, after uint64, follow bool, each func(Piece) error, quiet func() error) (End, error) {
	last, err := r.last(ctx, run)
	if err != nil {
		return End{}, err
	}
	if after >= last.Sequence && (!follow || last.Header.Get(headEnd) != "") {
		return endOf(last), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.FilterSubjects = []string{r.names.OutputSubject(run)}
	if after > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, after+1
	}
	d := reader{relay: r, cfg: cfg}
	defer d.close()
	if err := d.begin(ctx); err != nil {
		return End{}, r.conn.Explain("read what "+run+" says", err)
	}
	for failed := 0; ; {
		msg, meta, err := d.next(ctx, 2*time.Second)
		if ctx.Err() != nil {
			return End{}, ctx.Err()
		}
		if err != nil { // nothing came, or the servers are away: then the consumer goes on when they are back
			if failed++; !follow && failed > 10 {
				return End{}, r.conn.Explain("read what "+run+" says", err)
			}
			if err := errors.Join(quiet(), rest(ctx, pollEvery)); err != nil {
				return End{}, err
			}
			continue
		}
		failed = 0
		if msg.Headers().Get(headEnd) != "" {
			if cfg.HeadersOnly { // without its text
				return r.end(ctx, run)
			}
			return End{true, msg.Data()}, nil
		}
		p := Piece{Seq: meta.Sequence.Stream, Text: msg.Data()}
		if p.From, err = strconv.ParseInt(msg.Headers().Get(headFrom), 10, 64); err != nil {
			return End{}, fmt.Errorf("read what %s says: a piece does not say where it begins", run)
		}
		if p.To, err = strconv.ParseInt(msg.Headers().Get(headTo), 10, 64); err != nil {
			return End{}, fmt.Errorf("read what %s says: a piece does not say where it ends", run)
		}
		if err := each(p); err != nil {
			return End{}, err
		}
		if !follow && p.Seq >= last.Sequence {
			return End{}, nil
		}
	}
}

// end is the end of a run that has ended.
func (r *Relay) end(ctx context.Context, run string) (End, error) {
	last, err := r.last(ctx, run)
	if err != nil {
		return End{}, err
	}
	return endOf(last), nil
}

// endOf is what the last message of a run says of its end.
func endOf(last *jetstream.RawStreamMsg) End {
	if last.Header.Get(headEnd) == "" {
		return End{}
	}
	return End{true, last.Data}
}

// Follow writes what a run says, from the beginning of what the servers have; with follow
// until it has ended, else what is there. note is told what a reader should know: that
// something is missing. quiet is called now and then while nothing comes; its error ends it.
func (r *Relay) Follow(ctx context.Context, run string, follow bool, w io.Writer, note func(string), quiet func() error) (End, error) {
	var at int64
	return r.Pieces(ctx, run, 0, follow, func(p Piece) error {
		if p.From > at {
			note(fmt.Sprintf("%d bytes are not on the servers any more", p.From-at))
		}
		at = p.To
		_, err := w.Write(p.Text)
		return err
	}, quiet)
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// last is the last message of a run.
func (r *Relay) last(ctx context.Context, run string) (*jetstream.RawStreamMsg, error) {
	s, err := r.conn.JS.Stream(ctx, r.names.Output)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("%s: %w", run, ErrNotFound)
	}
	if err != nil {
		return nil, r.conn.Explain("look for "+run, err)
	}
	msg, err := s.GetLastMsgForSubject(ctx, r.names.OutputSubject(run))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%s: %w", run, ErrNotFound)
	}
	if err != nil {
		return nil, r.conn.Explain("look for "+run, err)
	}
	return msg, nil
}
