package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"reprise/internal/durable"
)

// noSync is the machine's disk without its fsyncs: what everything
// else costs.
func noSync() durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true}
		}
		return nil
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 1 << 10, 64 << 10, 1 << 20} {
		line := append(bytes.Repeat([]byte("x"), size-1), '\n')
		for name, disk := range map[string]durable.Disk{"fsync": {}, "no fsync": noSync()} {
			b.Run(fmt.Sprintf("%d bytes/%s", size, name), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "log")
				b.SetBytes(int64(size))
				for b.Loop() {
					if err := disk.Append(context.Background(), path, line, 0o600); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkWriteFile(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 4<<10)
	for name, write := range map[string]func(string) error{
		"durable":  func(p string) error { return durable.WriteFile(p, data, 0o600) },
		"hot":      func(p string) error { return durable.WriteFileHot(p, data, 0o600) },
		"no fsync": func(p string) error { return noSync().WriteFile(p, data, 0o600) },
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "f")
			for b.Loop() {
				if err := write(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriteSeveral is eight files, one after the other and together.
func BenchmarkWriteSeveral(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 4<<10)
	each := func(files []durable.File) error {
		for _, f := range files {
			if err := durable.WriteFile(f.Path, f.Data, f.Perm); err != nil {
				return err
			}
		}
		return nil
	}
	for name, write := range map[string]func([]durable.File) error{
		"one after the other": each,
		"together":            func(files []durable.File) error { return durable.Disk{}.WriteSeveral(files, 0o700) },
	} {
		b.Run(name, func(b *testing.B) {
			dir, files := b.TempDir(), make([]durable.File, 8)
			for i := range files {
				files[i] = durable.File{Path: filepath.Join(dir, fmt.Sprint("f", i)), Data: data, Perm: 0o600}
			}
			for b.Loop() {
				if err := write(files); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkChange(b *testing.B) {
	d, err := durable.OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for b.Loop() {
		c, err := d.Begin(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"a.md", "b.md", "c.md"} {
			c.Write(name, []byte("text\n"), 0o600)
		}
		if err := c.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}
