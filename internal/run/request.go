package run

import (
	"cmp"
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
// file; the supervisor takes it away when it has read it.
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

// takenPath is where the request to stop lies that a supervisor carries out. By the other
// name who asks sees that it was read; the file stays, so that the stop and its reason are
// known where the supervisor does not live to write them down.
func takenPath(dir, kind string) string {
	return filepath.Join(dir, "stopping-"+kind+".json")
}

// pendingStop is the request to stop that a supervisor did not live to carry out: the one
// that it had begun with, or else one that it had not read.
func pendingStop(r Record) (to Status, reason string, ok bool) {
	for _, at := range []func(dir, kind string) string{takenPath, requestPath} {
		for _, kind := range []string{requestCancel, requestInterrupt} {
			data, err := readFile(at(r.dir, kind))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var req stopRequest
			if err == nil {
				err = json.Unmarshal(data, &req)
			}
			if err != nil {
				req.Reason = "" // a damaged request still asks
			}
			if kind == requestCancel {
				return Killed, cmp.Or(req.Reason, "cancelled"), true
			}
			return Interrupted, cmp.Or(req.Reason, "interrupted"), true
		}
	}
	return "", "", false
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
		if s.taken[kind] {
			continue
		}
		data, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var req stopRequest
		if err == nil {
			err = json.Unmarshal(data, &req)
		}
		if rmErr := s.takeAway(kind, path); rmErr != nil {
			// It must not count ten times a second.
			s.taken[kind] = true
			err = errors.Join(err, rmErr)
		}
		if err == nil && kind == requestExtend && !(req.Seconds > 0 && req.Seconds <= maxTimeout.Seconds()) {
			err = fmt.Errorf("%v seconds are not a time between 0 and %s", req.Seconds, maxTimeout)
			req.Kind = ""
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

// takeAway takes a request that was read out of the way; the one that stops the run is
// kept by another name.
func (s *supervisor) takeAway(kind, path string) error {
	if kind == requestExtend || s.stopped {
		return s.opt.Disk.Remove(path)
	}
	return s.opt.Disk.Rename(path, takenPath(s.opt.Dir, kind))
}
