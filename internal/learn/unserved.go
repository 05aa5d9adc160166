package learn

import (
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/clip"
)

// What the service behind a client says where it does nothing: nobody is logged in, a plan is
// used up, it is overloaded or away. It is nothing to remember: it is true of one account at
// one time, and no work was done.
var (
	// serviceErrors are parts of the error by which a turn ended, in small letters, as the
	// clients' hooks and services word it.
	serviceErrors = []string{
		"authentication", "unauthorized", "unauthenticated", "oauth", "not logged in", "/login", "api key", "api_key", "permission_error", "forbidden",
		"billing", "credit balance", "payment", "quota", "resource_exhausted", "usage limit", "usage_limit", "rate limit", "rate_limit", "too many requests",
		"overloaded", "server_error", "api_error", "internal server error", "service unavailable", "bad gateway", "connection error", "econnrefused", "econnreset", "etimedout", "enotfound",
	}
	// serviceAnswers begin what a client says in its model's place.
	serviceAnswers = []string{
		"not logged in", "invalid api key", "please run /login", "api error", "credit balance is too low", "claude ai usage limit reached",
		"you've hit your limit", "you've hit your usage limit", "you've reached your usage limit", "5-hour limit reached", "weekly limit reached",
	}
)

// unserved says that a turn came to its end because the service did nothing.
func (t *turn) unserved() bool {
	if t.response == nil {
		return false
	}
	answer := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(t.response.text), "’", "'"))
	begins := utf8.RuneCountInString(answer) <= briefly && slices.ContainsFunc(serviceAnswers, func(s string) bool { return strings.HasPrefix(answer, s) })
	if t.error == "" {
		return begins && t.calls == 0 // what was worked on may end in such words
	}
	text := strings.ToLower(clip.Runes(t.error, 400))
	return begins || slices.ContainsFunc(serviceErrors, func(s string) bool { return strings.Contains(text, s) })
}

// idle says that nothing at all was done in a turn because of that.
func (t *turn) idle() bool { return t.calls == 0 && t.unserved() }
