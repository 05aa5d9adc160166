package redact_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/internal/redact"
	"reprise/internal/redact/suspect"
)

// The tokens are made here, from parts, so that none stands in the repository.
const (
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	aws   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexa  = "0123456789abcdef"
)

func random(r *rand.Rand, from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

func tokens(seed uint64) map[string]string {
	r := rand.New(rand.NewPCG(seed, 1))
	w := func(n int) string { return random(r, alnum, n) }
	return map[string]string{
		"github-pat":              "ghp" + "_" + w(36),
		"github-fine-grained-pat": "github" + "_pat_" + w(82),
		"github-app-token":        "ghs" + "_" + w(36),
		"gitlab-pat":              "glpat" + "-" + w(20),
		"aws-access-token":        "AK" + "IA" + random(r, aws, 16),
		"anthropic-api-key":       "sk-" + "ant-api03-" + w(93) + "AA",
		"openai-api-key":          "sk-" + "proj-" + w(74) + "T3Bl" + "bkFJ" + w(74),
		"slack-bot-token":         "xo" + "xb-" + random(r, "123456789", 12) + "-" + random(r, "123456789", 12) + "-" + w(24),
		"stripe-access-token":     "sk" + "_live_" + w(24),
		"gcp-api-key":             "AI" + "za" + w(35),
		"npm-access-token":        "npm" + "_" + strings.ToLower(w(36)),
		"huggingface-access-token": "hf" + "_" + random(r, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
			34),
		"jwt":                    "ey" + "J" + w(20) + ".ey" + "J" + w(40) + "." + w(43),
		"sendgrid-api-token":     "SG" + "." + strings.ToLower(w(66)),
		"pypi-upload-token":      "pypi-" + "AgEIcHlwaS5vcmc" + w(60),
		"digitalocean-pat":       "dop" + "_v1_" + random(r, hexa, 64),
		"hashicorp-tf-api-token": strings.ToLower(w(14)) + ".atlas" + "v1." + w(64),
		"1password-secret-key":   "A3" + "-" + random(r, upper, 6) + "-" + random(r, upper, 11) + "-" + random(r, upper, 5) + "-" + random(r, upper, 5) + "-" + random(r, upper, 5),
		// Letters alone at its beginning made it an old token of a kind that is left out.
		"vault-service-token": "hvs" + "." + random(r, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 24) + w(71),
		"private-key":         "-----BEGIN RSA PRIVATE " + "KEY-----\n" + w(64) + "\n" + w(64) + "\n-----END RSA PRIVATE " + "KEY-----",
	}
}

func TestSecretsGo(t *testing.T) {
	r := redact.New()
	around := []struct{ name, format string }{
		{"alone", "%s"},
		{"in a sentence", "please use %s for the call"},
		{"in JSON", `{"text": "%s"}`},
		{"at the end of a long text", strings.Repeat("The key thing is that they access the money.\n", 300) + "%s\n" + strings.Repeat("more words\n", 300)},
		{"in the environment", "export SOME_VALUE=%s\n"},
	}
	for seed := range uint64(3) {
		for id, token := range tokens(seed) {
			for _, a := range around {
				t.Run(id+"/"+a.name, func(t *testing.T) {
					text := fmt.Sprintf(a.format, token)
					got, n := r.String(text)
					if n == 0 {
						t.Fatalf("not found in %.200q", text)
					}
					if strings.Contains(got, token) || len(token) > 24 && strings.Contains(got, token[12:]) {
						t.Fatalf("still there: %q", got)
					}
					if want := fmt.Sprintf(a.format, "[redacted:"+id+"]"); got != want {
						t.Errorf("got %.300q, want %.300q", got, want)
					}
					if again, n := r.String(got); n != 0 {
						t.Errorf("redacting again finds %d more: %q", n, again)
					}
				})
			}
		}
	}
}

func TestNamedSecretsGo(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	v := random(rnd, alnum, 32)
	pw := "Tr0ub4" + "dor&3"
	begin, end := "-----BEGIN RSA PRIVATE "+"KEY-----\n", "-----END RSA PRIVATE "+"KEY-----\n"
	tests := []struct{ name, text, secret, id string }{
		{"assignment", `api_key = "` + v + `"`, v, "generic-api-key"},
		{"environment", "DB_PASSWORD=" + v + "\n", v, "generic-api-key"},
		{"yaml", "client_secret: " + v, v, "generic-api-key"},
		{"json", `{"access_token":"` + v + `"}`, v, "generic-api-key"},
		{"url", "postgres" + "://app:" + pw + "@db.internal/app", pw, "url-password"},
		{"header", "Authorization: " + "Bearer " + v, v, "authorization-header"},
		{"curl", `curl -H "Authorization: ` + `Bearer ` + v + `" https://example.com`, v, ""},
		{"cut key", begin + strings.Repeat(v+"\n", 3), v, "private-key-part"},
		{"key without its beginning", strings.Repeat(v+"\n", 3) + "dGhlIGVuZA==\n" + end, v, "private-key-end"},
		{"cut key with numbers", "     1\t" + begin + "     2\t" + v + "\n     3\t" + v + "\n", v, "private-key-part"},
		{"cut key as a client reads it", "     1→" + begin + "     2→" + v + "\n     3→" + v + "\n", v, "private-key-part"},
		{"cut key as grep finds it", "id/rsa:1:" + begin + "id/rsa:2:" + v + "\nid/rsa:3:" + v + "\n", v, "private-key-part"},
		{"end of a key as grep finds it", "7-" + v + "\n8-" + v + "\n9:" + end, v, "private-key-end"},
		{"cut key in a quotation", "> " + begin + "> " + v + "\n> " + v + "\n", v, "private-key-part"},
		{"cut key in a change", "+" + begin + "+" + v + "\n+" + v + "\n", v, "private-key-part"},
		{"cut key with its headers", begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,9CD4AF5C59E7F985\n\n" + v + "\n" + v + "\n", v, "private-key-part"},
		{"cut key in JSON", `{"content":"1\t` + strings.TrimSpace(begin) + `\n2\t` + v + `\n3\t` + v + `"}`, v, "private-key-part"},
	}
	r := redact.New()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, n := r.String(tt.text)
			if n == 0 || strings.Contains(got, tt.secret) {
				t.Fatalf("%d found: %q", n, got)
			}
			if !strings.Contains(got, "[redacted:"+tt.id) {
				t.Errorf("got %q, want it by %s", got, tt.id)
			}
		})
	}
}

func ordinary() []string {
	sum := sha256.Sum256([]byte("content"))
	h := hex.EncodeToString(sum[:])
	return []string{
		"",
		"a",
		"They key in the access code; the secret is that there is no secret.",
		"commit " + h[:40] + "\nAuthor: A Person <a@example.com>\n",
		`{"id":"019a1b2c-3d4e-7f50-8a9b-0c1d2e3f4a5b","hash":"sha256:` + h + `"}`,
		`{"prev":"` + h + `","v":1}`,
		"func TestKeyboardShortcuts(t *testing.T) { token := next(); if token.Kind != lexer.IDENT { return } }",
		"const maxTokens = 4000\nvar keys = map[string]int{\"a\": 1}\n",
		"https://example.com/path?token=&x=1",
		"see https://user@example.com/ and ssh://git@example.com:22/repo",
		"\x00\xff\xfe key=\x80\x81",
		"password: ${DB_PASSWORD}\napi_key: $API_KEY\nsecret: {{ .Values.secret }}\n",
		"input_tokens=1234 output_tokens=5678 max_output_tokens: 4000",
		"session 6f9619ff-8b86-d011-b42d-00cf4fc964ff ended",
		"/home/user/go/pkg/mod/golang.org/x/sys@v0.50.0/unix/zerrors_linux.go:123",
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	r := redact.New()
	for _, s := range ordinary() {
		if got, n := r.String(s); n != 0 || got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, s := range ordinary() {
		f.Add(s)
	}
	for _, s := range tokens(9) {
		f.Add("x=" + s + " ")
	}
	r := redact.New()
	f.Fuzz(func(t *testing.T, s string) {
		got, n := r.String(s)
		if n == 0 && got != s {
			t.Fatalf("changed without a finding: %q to %q", s, got)
		}
		if n > 0 && strings.Count(got, "[redacted:") < n {
			t.Fatalf("%d findings in %q", n, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q, no longer UTF-8", s, got)
		}
	})
}

func benchText(n int) string {
	line := "The session's key finding: api.Get(ctx, token) in internal/api/client_test.go:42 returned 200, see access log for auth details.\n"
	return strings.Repeat(line, n/len(line)+1)[:n]
}

func BenchmarkNoSecrets(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", n>>10), func(b *testing.B) {
			r, s := redact.New(), benchText(n)
			r.String(s)
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, found := r.String(s); found != 0 {
					b.Fatal("found something")
				}
			}
		})
	}
}

// BenchmarkSuspect is what a hook pays for a text that holds no secret.
func BenchmarkSuspect(b *testing.B) {
	ordinary, err := os.ReadFile("testdata/ordinary.txt")
	if err != nil {
		b.Fatal(err)
	}
	for name, texts := range map[string][]string{"prose": {benchText(16 << 10)}, "lines about secrets": strings.SplitAfter(string(ordinary), "\n")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(strings.Join(texts, ""))))
			for b.Loop() {
				for _, s := range texts {
					suspect.String(s)
				}
			}
		})
	}
}

// BenchmarkFirst is what a process pays that redacts one text and ends.
func BenchmarkFirst(b *testing.B) {
	s := benchText(1 << 10)
	for b.Loop() {
		redact.New().String(s)
	}
}

// FuzzSuspect: what the rules take out is suspected beforehand, also of a text
// that goes by a name.
func FuzzSuspect(f *testing.F) {
	for _, s := range ordinary() {
		f.Add("password", s)
	}
	for id, s := range tokens(11) {
		f.Add(id, "x="+s+" ")
		f.Add("secret", s[:min(len(s), 30)])
		f.Add("", "\x1b[1m"+s[:8]+"\x1b[0m"+s[8:])
	}
	f.Add("0", "0s.00000001028191A2CXYZabB7")
	r := redact.New()
	f.Fuzz(func(t *testing.T, key, s string) {
		if _, n := r.Named(key, s); n > 0 && !suspect.Named(key, s) {
			t.Fatalf("%q: %q holds a secret by the rules, and is not suspected", key, s)
		}
	})
}
