package fleettest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// NKey makes a user's key: what servers know it by, and its seed.
func NKey(t testing.TB) (public string, seed []byte) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = key.Seed(); err != nil {
		t.Fatal(err)
	}
	return public, seed
}

// Documented starts a server with the users and permissions that docs/fleet.md has as its
// example. seeds are files with the users' NKeys, by UADMIN, UWORKER and UREADER.
func Documented(t testing.TB) (s *server.Server, seeds map[string]string) {
	t.Helper()
	root, err := os.Getwd() // that of the package whose test it is
	for err == nil {
		if _, there := os.Stat(filepath.Join(root, "go.mod")); there == nil || filepath.Dir(root) == root {
			break
		}
		root = filepath.Dir(root)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, conf, ok := strings.Cut(string(doc), "```conf\n")
	conf, _, ok2 := strings.Cut(conf, "```")
	if !ok || !ok2 {
		t.Fatal("docs/fleet.md has no configuration")
	}
	dir := t.TempDir()
	seeds = map[string]string{}
	for _, role := range []string{"UADMIN", "UWORKER", "UREADER"} {
		public, seed := NKey(t)
		conf = strings.ReplaceAll(conf, `"`+role+`"`, `"`+public+`"`)
		seeds[role] = filepath.Join(dir, role)
		if err := os.WriteFile(seeds[role], seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(conf, "/var/lib/nats", filepath.ToSlash(dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	return Server(t, func(o *server.Options) {
		from, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o.Nkeys, o.Users = from.Nkeys, from.Users
	}), seeds
}
