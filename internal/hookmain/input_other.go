//go:build !unix

package hookmain

import (
	"io"
	"os"
	"sync"
	"time"

	"reprise/internal/agent/dialect"
)

func noCore() {}

// readInput reads the standard input for at most that long. Of a large payload
// that takes longer, what came is what there is; mark is that of what was cut.
func readInput(f *os.File, patience time.Duration) (data []byte, mark string, err error) {
	var mu sync.Mutex
	var in dialect.Intake
	done := make(chan error, 1)
	go func() {
		chunk := make([]byte, 64<<10)
		for {
			n, err := f.Read(chunk)
			mu.Lock()
			in.Add(chunk[:n])
			mu.Unlock()
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				done <- err
				return
			}
		}
	}()
	select {
	case err = <-done:
		if err != nil {
			return nil, "", err
		}
		data, mark = in.Payload(true)
		return data, mark, nil
	case <-time.After(bigShare(patience)):
	}
	mu.Lock()
	big := in.Big()
	mu.Unlock()
	if !big {
		select {
		case err = <-done:
			if err == nil {
				data, mark = in.Payload(true)
			}
			return data, mark, err
		case <-time.After(patience - bigShare(patience)):
		}
	}
	mu.Lock() // and kept: nothing more is taken in
	if !in.Big() {
		return nil, "", errSlow
	}
	data, mark = in.Payload(false)
	return data, mark, nil
}
