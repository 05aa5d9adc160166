package relay_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
)

// made are secrets that are made of parts, so that none stands here.
func madeSecret(n int) string {
	const letters = "aK3xP9qLm2ZtR7vBn4CwY8sDf6GhJ1uE0oIi5TzXkQbNcV"
	var b strings.Builder
	b.WriteString("gh" + "p_")
	for i := range 36 {
		b.WriteByte(letters[(i*7+n*13+i*n)%len(letters)])
	}
	return b.String()
}

func madeKey() string {
	return "-----BEGIN " + "RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEpAIBAAKCAQEA7", 3)+"\n", 20) + "-----END " + "RSA PRIVATE KEY-----\n"
}

// What a run says and what it leaves goes to the servers without secrets, wherever they
// stand: in a line, across the end of a piece of a line without end, in a key of many lines
// across the end of a piece, in a file. The bytes of the servers' own files show it. What is
// no text stays as it was.
func TestSecretsStayOnTheMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := ""
	s := fleettest.Server(t, func(o *server.Options) { store = o.StoreDir })
	r := relay.Open(machine(t, s.ClientURL()), "shop")
	const run = "run-abcdefghij"
	const piece = 128 << 10
	pad := func(n int) string { return strings.Repeat("word ", n/5) }
	var secrets []string
	secret := func() string { secrets = append(secrets, madeSecret(len(secrets))); return secrets[len(secrets)-1] }
	text := "token " + secret() + "\n"
	text += pad(piece-100) + "\n" + madeKey() + "after the key\n"
	for shift := range 8 { // lines longer than a piece, with secrets wherever the piece may end
		line := `{"text":"` + pad(piece-len(`{"text":"`)-10*shift-7)
		text += line + secret() + " and so on " + pad(piece) + `"}` + "\n"
	}
	file := filepath.Join(dir, "stdout.jsonl")
	add(t, file, text)
	if err := r.Mirror(t.Context(), run, file, func() []byte { return []byte(`{}`) }); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if _, err := r.Follow(t.Context(), run, false, &said, none, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := said.String(); !strings.Contains(got, "after the key") || strings.Count(got, "and so on") != 8 {
		t.Errorf("what was said did not come whole: %d bytes of %d", said.Len(), len(text))
	}
	left := filepath.Join(dir, "notes.md")
	add(t, left, text+"the key is "+secret())
	binary := filepath.Join(dir, "picture")
	raw := append([]byte("\x89PNG\x00"), bytes.Repeat([]byte{0, 1, 254, '\n'}, piece)...)
	if err := os.WriteFile(binary, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"artifacts/notes.md": left, "artifacts/picture": binary} {
		if err := r.PutFile(t.Context(), run, name, path); err != nil {
			t.Fatal(err)
		}
	}
	var back bytes.Buffer
	if err := r.GetFile(t.Context(), run, "artifacts/picture", &back); err != nil || !bytes.Equal(back.Bytes(), raw) {
		t.Errorf("what is no text came back as %d bytes of %d, %v", back.Len(), len(raw), err)
	}
	back.Reset()
	if err := r.GetFile(t.Context(), run, "artifacts/notes.md", &back); err != nil || !strings.Contains(back.String(), "the key is ") {
		t.Errorf("%d bytes, %v", back.Len(), err)
	}
	parts := []string{"MIIEpAIBAAKCAQEA7"}
	for _, s := range secrets {
		parts = append(parts, s[:20], s[len(s)-20:])
	}
	looked := 0
	look := func(where string, data []byte) {
		looked += len(data)
		for i, p := range parts {
			if bytes.Contains(data, []byte(p)) {
				t.Errorf("%s holds secret %d", where, i)
			}
		}
	}
	look("what was said", said.Bytes())
	look("what was left", back.Bytes())
	before := looked
	err := filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		look(filepath.Base(path), data)
		return err
	})
	if err != nil || looked < before+2*piece {
		t.Errorf("%d bytes of the servers were looked at, %v", looked-before, err)
	}
}
