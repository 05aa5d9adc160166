package relay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/durable"
	"reprise/internal/fleet"
	"reprise/internal/redact"
)

const (
	maxFile = 256 << 20 // of a file that is sent, in bytes
	// maxFiles and minFiles bound all files of a project together, in bytes.
	maxFiles = 4 << 30
	minFiles = 16 << 20
)

// File is one that came of a run.
type File struct {
	Name  string    `json:"name"` // within the run
	Bytes uint64    `json:"bytes"`
	At    time.Time `json:"at"`
}

func (r *Relay) files(ctx context.Context, make bool) (jetstream.ObjectStore, error) {
	get := func() (jetstream.ObjectStore, error) { return r.conn.JS.ObjectStore(ctx, r.names.Files) }
	if !make {
		return get()
	}
	return fleet.GetOrMake(get, func() (jetstream.ObjectStore, error) {
		for {
			_, most := r.shares(ctx)
			s, err := asLarge(most, minFiles, func(most int64) (jetstream.ObjectStore, error) {
				return r.conn.JS.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
					Bucket: r.names.Files, Description: "files that came of runs of reprise", TTL: KeepFor, MaxBytes: most, Replicas: r.conn.Replicas(),
				})
			})
			if !fleet.Full(err) || !r.makeRoom(ctx) {
				return s, err
			}
		}
	})
}

// PutFile sends a file of a run, secrets taken out of it where it is text: what is on the
// servers is read by more than this machine's user. Sent again it takes the other's place.
func (r *Relay) PutFile(ctx context.Context, run, name, path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("send %s: it is no file", path)
	case info.Size() > maxFile:
		return fmt.Errorf("send %s: it has %d bytes, the most is %d", path, info.Size(), maxFile)
	}
	f, err := durable.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return told(ctx, r.conn, "send "+name, func(ctx context.Context) error {
		s, err := r.files(ctx, true)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			_, err = s.Put(ctx, jetstream.ObjectMeta{Name: run + "/" + name}, &cleaned{from: bufio.NewReaderSize(io.LimitReader(f, maxFile), chunkBytes), by: redact.New()})
		}
		return err
	}, r.names.Files)
}

// cleaned is a file without secrets, read piece by piece. One with a zero byte in its
// first piece is no text, and stays as it is.
type cleaned struct {
	from *bufio.Reader
	by   *redact.Redactor
	raw  bool
	some bool   // a piece was read
	out  []byte // cleaned and not handed on
}

func (c *cleaned) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		piece, err := c.from.Peek(chunkBytes)
		if len(piece) == 0 {
			return 0, err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if !c.some {
			c.some, c.raw = true, bytes.IndexByte(piece, 0) >= 0
		}
		if err == nil && !c.raw {
			piece = piece[:whole(piece)]
		}
		if c.out = bytes.Clone(piece); !c.raw {
			c.out, _ = c.by.Bytes(c.out)
		}
		if _, err := c.from.Discard(len(piece)); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// Files are those of a run that the servers have.
func (r *Relay) Files(ctx context.Context, run string) ([]File, error) {
	s, err := r.files(ctx, false)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	var list []*jetstream.ObjectInfo
	if err == nil {
		list, err = s.List(ctx)
	}
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	var out []File
	for _, o := range list {
		if name, ok := strings.CutPrefix(o.Name, run+"/"); ok {
			out = append(out, File{name, o.Size, o.ModTime.UTC()})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, r.conn.Explain("list files of "+run, err)
}

// GetFile writes a file of a run. Its digest is checked as it comes; a file that does not
// come whole is an error, after some of it may have been written.
func (r *Relay) GetFile(ctx context.Context, run, name string, w io.Writer) error {
	s, err := r.files(ctx, false)
	var o jetstream.ObjectResult
	if err == nil {
		o, err = s.Get(ctx, run+"/"+name)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("file %s of %s: %w", name, run, ErrNotFound)
	}
	if err != nil {
		return r.conn.Explain("fetch "+name, err)
	}
	defer o.Close()
	if _, err := io.Copy(w, o); err != nil {
		return r.conn.Explain("fetch "+name, err)
	}
	return r.conn.Explain("fetch "+name, o.Error())
}
