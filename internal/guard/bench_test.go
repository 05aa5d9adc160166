package guard

import (
	"strings"
	"testing"
)

func long8k() string {
	return strings.TrimSuffix(strings.Repeat("ls -la sub | grep -v x && git log --oneline -3; ", 8000/48), "; ")
}

func BenchmarkCommand(b *testing.B) {
	p := newProject(b)
	r := p.rules()
	for name, c := range map[string]string{"short": "cd sub && ls -la | head -20 && git status --short", "8k": long8k()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Command(c, p.dir)
			}
		})
	}
}
