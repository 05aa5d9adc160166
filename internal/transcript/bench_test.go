package transcript

import (
	"bytes"
	"context"
	"os"
	"testing"

	"reprise/internal/event"
)

func BenchmarkRead(b *testing.B) {
	found := Find(samplePlaces(), nil)
	defer found.Close()
	for _, client := range Clients() {
		var data []byte
		for _, s := range found.Sources {
			if s.Client == client && s.Agent == "" && s.Session != "" {
				part, err := os.ReadFile(s.Path)
				if err != nil {
					b.Fatal(err)
				}
				data = append(data, part...)
			}
		}
		if client == "gemini" {
			for _, s := range found.Sources {
				if s.Client == client && s.name[len(s.name)-1] == 'l' {
					data, _ = os.ReadFile(s.Path)
				}
			}
		}
		data = bytes.Repeat(data, 1+(4<<20)/len(data))
		b.Run(client, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				src := Source{Client: client, Path: "f", name: "f.jsonl"}
				if _, err := src.read(context.Background(), bytes.NewReader(data), later(), 0, func(string, event.Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
