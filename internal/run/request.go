package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Kinds of request that a supervisor acts on. Each is a file of its own in the
// run's directory, request-<kind>.json, so that two askers never write one
// file; the supervisor removes it when it has read it.
const (
	requestCancel    = "cancel"
	requestInterrupt = "interrupt"
	requestExtend    = "extend"
)

// stopRequest is such a file.
type stopRequest struct {
	V       int       `json:"v"`
	Kind    string    `json:"kind"`
	Reason  string    `json:"reason,omitempty"`
	Seconds float64   `json:"seconds,omitempty"` // extend only
	At      time.Time `json:"at"`
}

func requestPath(dir, kind string) string {
	return filepath.Join(dir, "request-"+kind+".json")
}

func ask(r Record, req stopRequest) error {
	req.V = formatVersion
	data, err := encode(req)
	if err != nil {
		return fmt.Errorf("ask run to %s: %w", req.Kind, err)
	}
	if err := r.disk.WriteFileHot(requestPath(r.dir, req.Kind), data, 0o600); err != nil {
		return fmt.Errorf("ask run to %s: %w", req.Kind, err)
	}
	return nil
}

// request takes the next request out of the run's directory. One that cannot
// be read is noted and removed: it would be read again ten times a second.
func (s *supervisor) request() (stopRequest, bool) {
	for _, kind := range []string{requestCancel, requestInterrupt, requestExtend} {
		path := requestPath(s.opt.Dir, kind)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var req stopRequest
		if err == nil {
			err = json.Unmarshal(data, &req)
		}
		if rmErr := s.opt.Disk.Remove(path); rmErr != nil {
			err = errors.Join(err, rmErr)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "read request %s: %v\n", path, err)
		}
		if kind == requestExtend && req.Kind != kind {
			continue
		}
		req.Kind = kind // a damaged cancel still cancels
		return req, true
	}
	return stopRequest{}, false
}
