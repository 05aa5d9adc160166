// Package gate decides who is let into the dashboard: one browser for each link that was
// printed, on this machine alone, and changes from its own pages alone.
//
// It owns no files and writes none; the lock it takes is its own, in memory.
package gate

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	cookieName = "reprise"
	csrfField  = "csrf"
	// maxSessions are the browsers that are let in at a time; the oldest goes first.
	maxSessions = 16
	maxForm     = 3 << 20 // a memory file of memory.MaxContent, encoded as a form, fits in it
)

// policy lets a page load from this server and from nowhere else, and run no script
// or style that stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Gate is what every request passes first: its Host must be this server's, its
// cookie one that was given for a one-time token, and a change must come from one
// of our own pages.
//
// Everything lies below a path that is made by chance: cookies are sent to every
// port of a host, and so another server on this machine is not sent ours.
type Gate struct {
	base     string // "/" and 26 characters
	origins  []string
	hosts    []string
	readOnly bool
	next     http.Handler
	Failed   func(w http.ResponseWriter, r *http.Request, status int, err error)
	Used     func() // a link was used, and there is another

	mu       sync.Mutex
	token    [sha256.Size]byte // of the link that is good now
	plain    string
	sessions []session // oldest first
}

// session is one browser.
type session struct {
	id   [sha256.Size]byte
	csrf string
}

// Visit is what a handler knows of who asks.
type Visit struct {
	Base, CSRF string
	ReadOnly   bool
}

type visitKey struct{}

func VisitOf(r *http.Request) Visit {
	v, _ := r.Context().Value(visitKey{}).(Visit)
	return v
}

func New(addr string, readOnly bool, next http.Handler) (*Gate, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("serve the dashboard: %w", err)
	}
	base := secret()[:26]
	g := &Gate{base: "/" + strings.ToLower(base), readOnly: readOnly, next: http.StripPrefix("/"+strings.ToLower(base), next), hosts: []string{addr, "localhost:" + port}}
	for _, h := range g.hosts {
		g.origins = append(g.origins, "http://"+h)
	}
	g.Failed = func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		http.Error(w, err.Error(), status)
	}
	g.newToken()
	return g, nil
}

// secret is 256 bits of chance as text.
func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails; the program ends where there is no chance to be had
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}

func (g *Gate) newToken() {
	g.plain = strings.ToLower(secret())
	g.token = sha256.Sum256([]byte(g.plain))
}

// Link is the address that lets one browser in.
func (g *Gate) Link() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return "http://" + g.hosts[0] + g.base + "/?token=" + g.plain
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), interest-cohort=()")
	h.Set("Cache-Control", "no-store")
}

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	status, err := g.check(w, r)
	if err != nil {
		g.Failed(w, r, status, err)
		return
	}
	if status != 0 {
		return // it has been answered
	}
	g.next.ServeHTTP(w, r)
}

var errNoLink = errors.New("this page needs the link that `reprise web` has printed: open that, or start `reprise web` anew")

// check returns an error with its status, or a status alone where the request has
// been answered.
func (g *Gate) check(w http.ResponseWriter, r *http.Request) (int, error) {
	if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		// A foreign page whose name was made to point here still sends that name.
		return http.StatusForbidden, errors.New("this host name is not the dashboard's: open the link that `reprise web` has printed")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		return http.StatusMethodNotAllowed, errors.New("the dashboard is read by GET and changed by POST")
	}
	if token := r.URL.Query().Get("token"); token != "" && r.URL.Path == g.base+"/" {
		return g.enter(w, r, token)
	}
	s, ok := g.session(r)
	if !ok || !strings.HasPrefix(r.URL.Path, g.base+"/") {
		return http.StatusForbidden, errNoLink
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return http.StatusForbidden, errors.New("another page asked for this: open it from the dashboard")
	}
	if r.Method == http.MethodPost {
		if status, err := g.checkChange(w, r, s); err != nil {
			return status, err
		}
	}
	v := Visit{Base: g.base, CSRF: s.csrf, ReadOnly: g.readOnly}
	*r = *r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	return 0, nil
}

// checkChange lets through what a form of ours sent. Browsers that keep the referrer
// to themselves, as ours are told to, send "null" for the origin of a form; then
// Sec-Fetch-Site, which no page can set, must say that it came from here.
func (g *Gate) checkChange(w http.ResponseWriter, r *http.Request, s session) (int, error) {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Values("Origin")
	known := len(origin) == 1 && slices.Contains(g.origins, strings.ToLower(origin[0])) && strings.EqualFold(origin[0], "http://"+r.Host)
	opaque := len(origin) == 0 || len(origin) == 1 && origin[0] == "null"
	if !known && !(opaque && site == "same-origin") {
		return http.StatusForbidden, errors.New("a change must come from a page of the dashboard itself")
	}
	if g.readOnly {
		return http.StatusForbidden, errors.New("the dashboard was started with --read-only: it changes nothing")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return http.StatusRequestEntityTooLarge, fmt.Errorf("the form is over the limit of %d bytes: edit the file itself", maxForm)
		}
		return http.StatusBadRequest, errors.New("the form did not arrive whole: send it again")
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get(csrfField)), []byte(s.csrf)) != 1 {
		return http.StatusForbidden, errors.New("the form is of another session: load the page anew and send it again")
	}
	return 0, nil
}

// enter takes a one-time token and gives the browser a cookie for it.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request, token string) (int, error) {
	_, known := g.session(r)
	if r.Method != http.MethodGet || r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") == "prefetch" {
		return http.StatusForbidden, errors.New("the link is for opening: it is good once")
	}
	sum := sha256.Sum256([]byte(token))
	g.mu.Lock()
	good := subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
	if !good {
		g.mu.Unlock()
		if known { // the page that a link has opened, loaded anew
			http.Redirect(w, r, g.base+"/", http.StatusSeeOther)
			return http.StatusSeeOther, nil
		}
		return http.StatusForbidden, errors.New("this link was used, or is of a dashboard that has ended: `reprise web` prints a new one after each use")
	}
	value := secret()
	mac := hmac.New(sha256.New, []byte(value))
	mac.Write([]byte(csrfField))
	g.sessions = append(g.sessions, session{id: sha256.Sum256([]byte(value)), csrf: hex.EncodeToString(mac.Sum(nil))})
	if n := len(g.sessions); n > maxSessions {
		g.sessions = slices.Delete(g.sessions, 0, n-maxSessions)
	}
	g.newToken()
	g.mu.Unlock()
	if g.Used != nil {
		g.Used()
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: g.base + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	// A redirect would go on what another page began, and so come without the strict
	// cookie; a page of our own begins anew.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	to := (&url.URL{Path: g.base + "/"}).EscapedPath()
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>reprise</title><link rel="icon" href="%sstatic/icon.svg">`+
		`<meta http-equiv="refresh" content="0;url=%s"><p><a href="%s">Open the dashboard</a></p></html>`, to, to, to)
	return http.StatusOK, nil
}

// session is the browser whose cookie a request has.
func (g *Gate) session(r *http.Request) (session, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName) {
		sum := sha256.Sum256([]byte(c.Value))
		for _, s := range g.sessions {
			if subtle.ConstantTimeCompare(sum[:], s.id[:]) == 1 {
				return s, true
			}
		}
	}
	return session{}, false
}
