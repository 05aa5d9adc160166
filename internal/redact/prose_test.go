package redact

import (
	"strings"
	"testing"
)

// TestSecretsInProse: an error message that quotes a parameter has a secret
// before a colon, a full stop or an extension, where gitleaks, which reads
// programs, does not look for its end.
func TestSecretsInProse(t *testing.T) {
	r := New()
	letters := "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
	for _, secret := range []string{
		"npm" + "_" + letters, "sk" + "_live_" + "51H7xQ2mN9pL4vR8sT3wY6zB", "AIza" + "SyD3f7Gh1Jk5Lm9Np2Qr6St0Uv4Wx8Yz1Ab",
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ." + "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
	} {
		for _, text := range []string{
			"not found: blocks/%.md", "stat /nope/%: no such file", "no job %. There is none", "use %, then go on", "it (%) is there", "is it %?", "[%]", "a %", "%\nb",
		} {
			got, _ := r.String(strings.ReplaceAll(text, "%", secret))
			if strings.Contains(got, secret[len(secret)-12:]) {
				t.Errorf("%q: got %q", text, got)
			}
		}
	}
}
