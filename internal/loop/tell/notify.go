// Package tell is how a loop is heard of outside: notices for people, on the desktop, by a
// command, a webhook or mail, and spans for a collector of OpenTelemetry.
//
// It decides nothing and knows no loop: it is given what is to be told. It owns no files,
// writes none and takes no locks that anybody else sees.
package tell

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/internal/clip"
	"reprise/internal/proc"
)

// Notice is what a person is told.
type Notice struct {
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	Project string `json:"project"`
	Loop    string `json:"loop"`
	Item    string `json:"item,omitempty"`
	// Answer is the command by which it is answered in a terminal, "" where there is nothing to
	// answer.
	Answer string    `json:"-"`
	At     time.Time `json:"at"`
}

// Notifier tells a person, in every way that is configured.
type Notifier struct {
	Desktop bool
	Command string // run by a shell
	Webhook string
	Secret  string // by which webhooks are signed; "" sends them unsigned
	// Unsigned is why they are, where that is not what the settings want: it is the error of a
	// webhook that was sent.
	Unsigned string
	Mail     string // address
	PerHour  int    // notices in an hour; 0 is none at all

	GOOS string
	Env  []string
	Now  func() time.Time
	// LookPath finds a program; Run runs one. Post posts to the webhook.
	LookPath func(name string) (string, error)
	Run      func(ctx context.Context, c proc.Cmd, input string) error
	Post     func(ctx context.Context, url string, header map[string]string, body []byte) error

	mu   sync.Mutex
	sent []time.Time
	lost int // since the last that was sent
}

// Any reports whether anybody would be told.
func (n *Notifier) Any() bool {
	return n.PerHour > 0 && (n.Desktop || n.Command != "" || n.Webhook != "" || n.Mail != "")
}

// Send tells of a notice in every way. Ways that fail do not keep the others from it.
func (n *Notifier) Send(ctx context.Context, notice Notice) error {
	if !n.Any() || !n.allowed(&notice) {
		return nil
	}
	var errs []error
	try := func(what string, wanted bool, f func() error) {
		if wanted {
			if err := f(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
			}
		}
	}
	try("desktop", n.Desktop, func() error { return n.desktop(ctx, notice) })
	try("command", n.Command != "", func() error { return n.command(ctx, notice) })
	try("webhook", n.Webhook != "", func() error { return n.webhook(ctx, notice) })
	try("mail", n.Mail != "", func() error { return n.mail(ctx, notice) })
	return errors.Join(errs...)
}

// allowed keeps to the number of notices in an hour. The next that is sent says how
// many were not.
func (n *Notifier) allowed(notice *Notice) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Now()
	kept := n.sent[:0]
	for _, t := range n.sent {
		if d := now.Sub(t); d >= 0 && d < time.Hour {
			kept = append(kept, t)
		}
	}
	n.sent = kept
	if len(n.sent) >= n.PerHour {
		n.lost++
		return false
	}
	n.sent = append(n.sent, now)
	if n.lost > 0 {
		notice.Text += fmt.Sprintf(" (%d notices before this were not sent: more than %d in an hour)", n.lost, n.PerHour)
		n.lost = 0
	}
	return true
}

func (n *Notifier) subject(notice Notice) string {
	return OneLine(fmt.Sprintf("reprise loop %s: %s", notice.Project, notice.Kind), 120)
}

func (n *Notifier) desktop(ctx context.Context, notice Notice) error {
	title, text := clean(n.subject(notice)), OneLine(clean(notice.Text), 500) // no argument can hold a zero byte
	name, args := "notify-send", []string{"--app-name=reprise", "--", title, text}
	if n.GOOS == "darwin" {
		// The text is an argument and never part of the script.
		name, args = "osascript", []string{"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", title, text}
	}
	path, err := n.LookPath(name)
	if err != nil {
		return fmt.Errorf("%w: what tells the desktop is not there; install it (%s; on Debian in libnotify-bin), or be told in another way and set loop.notify_desktop: off", err, name)
	}
	return n.Run(ctx, proc.Cmd{Path: path, Args: args, Env: n.Env}, "")
}

// command runs the user's own line. What the notice says is in its environment, so that
// nothing of it can be taken for a command.
func (n *Notifier) command(ctx context.Context, notice Notice) error {
	shell, args := "sh", []string{"-c", n.Command}
	if n.GOOS == "windows" {
		shell, args = "cmd", []string{"/c", n.Command}
	}
	path, err := n.LookPath(shell)
	if err != nil {
		return err
	}
	env := append(append([]string(nil), n.Env...), "REPRISE_NOTICE_KIND="+notice.Kind, "REPRISE_NOTICE_TEXT="+clean(notice.Text),
		"REPRISE_NOTICE_PROJECT="+notice.Project, "REPRISE_NOTICE_LOOP="+notice.Loop, "REPRISE_NOTICE_ITEM="+notice.Item)
	return n.Run(ctx, proc.Cmd{Path: path, Args: args, Env: env}, "")
}

func clean(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// webhook posts the notice as JSON. With a secret it is signed: the header
// X-Reprise-Signature is "sha256=" and the HMAC of the time in X-Reprise-Timestamp
// (seconds since 1970), a full stop and the body; who checks that refuses old times.
func (n *Notifier) webhook(ctx context.Context, notice Notice) error {
	body, err := json.Marshal(notice)
	if err != nil {
		return err
	}
	header := map[string]string{"Content-Type": "application/json"}
	if n.Secret != "" {
		at := strconv.FormatInt(n.Now().Unix(), 10)
		header["X-Reprise-Timestamp"] = at
		header["X-Reprise-Signature"] = Sign(n.Secret, at, body)
	}
	if err := n.Post(ctx, n.Webhook, header, body); err != nil || n.Unsigned == "" {
		return err
	}
	return errors.New(n.Unsigned)
}

// Sign is the signature of a webhook's body at a time.
func Sign(secret, at string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(at + "."))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

func (n *Notifier) mail(ctx context.Context, notice Notice) error {
	path, err := n.LookPath("sendmail")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("To: %s\nSubject: %s\nContent-Type: text/plain; charset=utf-8\nX-Reprise-Loop: %s\n\n%s\n\nItem: %s\n",
		n.Mail, mailHeader(n.subject(notice)), notice.Loop, clean(notice.Text), cmp.Or(notice.Item, "none"))
	if notice.Answer != "" {
		text += fmt.Sprintf("Answer with `%s` in the project.\n", notice.Answer)
	}
	return n.Run(ctx, proc.Cmd{Path: path, Args: []string{"-i", "--", n.Mail}, Env: n.Env}, text)
}

// mailHeader is a header's text: one line of ASCII.
func mailHeader(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// OneLine is a text in one line of at most n bytes.
func OneLine(s string, n int) string { return Clip(clip.Line(s), n) }

// Clip is a text in at most n bytes.
func Clip(s string, n int) string { return clip.Bytes(strings.ToValidUTF8(s, "\uFFFD"), n) }
