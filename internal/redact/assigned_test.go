package redact_test

import (
	"os"
	"strings"
	"testing"

	"reprise/internal/redact"
	"reprise/internal/redact/suspect"
)

// Passwords are chosen by people: what tells them is the name beside them.
func TestAssignedSecretsGo(t *testing.T) {
	const pw = "hunter2" + "hunter2"
	words := "correcthorse" + "battery"
	for _, tt := range []struct{ text, secret string }{
		{"password=" + pw, pw},
		{"PASSWORD=" + pw + "\nUSER=x", pw},
		{"export DB_PASSWORD=" + words, words},
		{"MYSQL_ROOT_PASSWORD=ab)&c)d,e", "ab)&c)d,e"},
		{"password: " + pw, pw},
		{"passwd = " + pw, pw},
		{"password=" + words, words},
		{`password = "` + words + `"`, words},
		{`{"password":"` + pw + `"}`, pw},
		{`{\"password\": \"` + pw + `\"}`, pw},
		{`{'client_secret': '` + pw + `'}`, pw},
		{"dbPassword: '" + pw + "',", pw},
		{`Password: "` + pw + `",`, pw},
		{`:password => "` + pw + `",`, pw},
		{`config["password"] = "` + pw + `"`, pw},
		{`let password: String = "` + pw + `";`, pw},
		{`password := "` + pw + `"`, pw},
		{`if password == "` + pw + `" {`, pw},
		{"mysql --password=" + pw + " -u root", pw},
		{"tool --password " + pw + " --user root", pw},
		{"tool --api-key " + pw, pw},
		{"<password>" + pw + "</password>", pw},
		{"https://example.com/?user=a&password=" + pw + "&x=1", pw},
		{"access_token=abc" + "d1234ef", "abc" + "d1234ef"},
		{"SMTP_PASS=" + pw, pw},
		{"secret: " + pw, pw},
		{"api_key=" + pw, pw},
		{"APIKEY=" + pw, pw},
		{"private_key=" + pw, pw},
		{"password2=" + pw, pw},
		{"passphrase: \"" + pw + "\"", pw},
		{"password=12345" + "678", "12345" + "678"},
		{"PGPASSWORD=" + words + " psql", words},
		{"PGPASSWORD='" + pw + "' psql", pw},
		{"user=a password=" + pw + ", host=b", pw},
	} {
		got, n := redact.New().String(tt.text)
		if n == 0 || strings.Contains(got, tt.secret) || !strings.Contains(got, "[redacted:") {
			t.Errorf("%q became %q", tt.text, got)
		}
		if !suspect.String(tt.text) {
			t.Errorf("%q is not suspected", tt.text)
		}
		if again, n := redact.New().String(got); n != 0 {
			t.Errorf("%q, taken out once, became %q", got, again)
		}
	}
	if got, _ := redact.New().Named("password", pw); strings.Contains(got, pw) {
		t.Errorf("a text of that name: %q", got)
	}
}

// Programs and their output talk of passwords and tokens all the time.
func TestOrdinaryLinesStay(t *testing.T) {
	data, err := os.ReadFile("testdata/ordinary.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, lines := redact.New(), 0
	for line := range strings.Lines(string(data)) {
		lines++
		if got, n := r.String(line); n != 0 {
			t.Errorf("%q became %q", line, got)
		}
	}
	if got, n := r.String(string(data)); n != 0 { // also side by side
		t.Errorf("together: %d: %s", n, got)
	}
	if lines < 200 {
		t.Errorf("only %d lines", lines)
	}
}

func FuzzAssigned(f *testing.F) {
	f.Add("password=hunter2hunter2")
	f.Add(`"token": "`)
	f.Add("<pwd>x</")
	r := redact.New()
	f.Fuzz(func(t *testing.T, s string) {
		got, n := r.String(s)
		if n > 0 && !suspect.String(s) {
			t.Fatalf("%q is not suspected and became %q", s, got)
		}
	})
}

// Names of tools, directories and sessions are one word: a secret in one has no
// edges.
func TestGluedSecretsGo(t *testing.T) {
	n := 0
	for id, token := range tokens(9) {
		for _, text := range []string{"mcp__" + token + "__run", "/home/me/proj" + token + "_x/src", "x" + token + "9", token + "_copy", "agent-" + token} {
			if strings.ContainsAny(token, " \n:\"") || strings.HasPrefix(id, "generic") {
				continue
			}
			if id == "huggingface-access-token" && !strings.ContainsAny(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				continue // nothing tells it from a word then
			}
			got, _ := redact.New().String(text)
			if strings.Contains(got, token) {
				t.Errorf("%s: %q stays", id, text)
			} else if !suspect.String(text) {
				t.Errorf("%s: %q is not suspected", id, text)
			}
			n++
		}
	}
	if n < 60 {
		t.Errorf("only %d texts tried", n)
	}
	for _, name := range []string{
		"internal/disk_test.go:12:34", "benchmark_test_results_2026", "australasia_pacific_region", "mark_testing_and_more_words",
		"mcp__playwright__browser_take_screenshot", "subtask_testRunnerHelper", "/home/me/context_window_manager",
	} {
		if got, n := redact.New().String(name); n != 0 {
			t.Errorf("%s became %s", name, got)
		}
	}
}
