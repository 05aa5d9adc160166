package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"reprise/internal/durable"
)

// importFigures are transcripts that are taken in, beside a program that only reads them and
// their JSON: the processor time of both.
func (r *rig) importFigures() ([]figure, error) {
	home := filepath.Join(r.dir, "imports", "home")
	w := &transcripts{home: home, r: rand.New(rand.NewPCG(1, 2))}
	total, err := w.write(20 << 20)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var ours, bare, clock []float64
	for i := range max(3, r.n/3) {
		data := filepath.Join(r.dir, "imports", fmt.Sprint("data", i))
		for _, m := range []struct {
			into *[]float64
			args []string
		}{{&ours, []string{r.reprise, "import", "transcripts", "--json"}}, {&bare, []string{self, "decode", home}}} {
			cmd := exec.Command(m.args[0], m.args[1:]...)
			cmd.Env, cmd.Stderr = append(r.env, "HOME="+home, "REPRISE_HOME="+data), os.Stderr
			began := time.Now()
			if _, err := cmd.Output(); err != nil {
				return nil, fmt.Errorf("%v: %w", m.args, err)
			}
			if m.into == &ours {
				clock = append(clock, time.Since(began).Seconds())
			}
			*m.into = append(*m.into, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
		}
	}
	f := ratioOf("import.processor", fmt.Sprintf("%.0f MB of transcripts taken in, processor time", float64(total)/1e6), "× reading them and their JSON", ours, bare, noiseCPU)
	f.Seen = fmt.Sprintf("%.0f MB/s by the clock", float64(total)/1e6/middle(clock))
	return []figure{f}, nil
}

// decode is "bench decode DIR": it reads each line of each file below, and its JSON.
func decode(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: decode DIR")
	}
	return filepath.WalkDir(args[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var v any
			if err := json.Unmarshal(s.Bytes(), &v); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return s.Err()
	})
}

// writeFigures are single writes that wait for the disk, beside the same by bare calls.
func (r *rig) writeFigures() ([]figure, error) {
	dir := filepath.Join(r.dir, "writes")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	data := make([]byte, 1000)
	for i := range data {
		data[i] = 'x'
	}
	data[len(data)-1] = '\n'
	bareAppend := func() error {
		f, err := os.OpenFile(filepath.Join(dir, "bare.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Sync(), f.Close())
	}
	bareReplace := func() error {
		path := filepath.Join(dir, "bare")
		f, err := os.Create(path + ".new")
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
		return syncDir(dir)
	}
	var out []figure
	for _, m := range []struct {
		name, what, of string
		ours, bare     func() error
	}{
		{"append.clock", "a line of 1 kB appended and synced", "× a bare append and fsync", func() error { return durable.Append(filepath.Join(dir, "log"), data, 0o600) }, bareAppend},
		{"replace.clock", "a file of 1 kB replaced, with its directory synced", "× the same by bare calls", func() error { return durable.WriteFile(filepath.Join(dir, "file"), data, 0o600) }, bareReplace},
	} {
		var ours, bare []float64
		for i := range 20*r.n + 1 {
			for _, w := range []struct {
				into *[]float64
				do   func() error
			}{{&ours, m.ours}, {&bare, m.bare}} {
				began := time.Now()
				if err := w.do(); err != nil {
					return nil, fmt.Errorf("%s: %w", m.what, err)
				}
				if i > 0 {
					*w.into = append(*w.into, float64(time.Since(began)))
				}
			}
		}
		f := ratioOf(m.name, m.what, m.of, ours, bare, noiseClock)
		f.Seen = fmt.Sprintf("%.2f to %.2f ms", middle(ours)/1e6, middle(bare)/1e6)
		out = append(out, f)
	}
	return out, nil
}
