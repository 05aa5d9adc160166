package gate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// door is a gate with something behind it, and a browser's view of it.
type door struct {
	*Gate
	addr    string
	reached int
}

func newDoor(t *testing.T, readOnly bool) *door {
	t.Helper()
	d := &door{addr: "127.0.0.1:7878"}
	g, err := New(d.addr, readOnly, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.reached++
		_, _ = io.WriteString(w, "inside "+r.URL.Path)
	}))
	if err != nil {
		t.Fatal(err)
	}
	d.Gate = g
	return d
}

// ask is a request as a browser sends it; change may alter it.
func (d *door) ask(method, path string, cookie *http.Cookie, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+d.addr+path, nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// enter opens the link and returns the cookie that it gives.
func (d *door) enter(t *testing.T) *http.Cookie {
	t.Helper()
	link, err := url.Parse(d.Link())
	if err != nil {
		t.Fatal(err)
	}
	w := d.ask("GET", link.RequestURI(), nil, nil)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("the link gave %d and %d cookies, want 200 and one", w.Code, len(cookies))
	}
	return cookies[0]
}

func TestNothingWithoutTheToken(t *testing.T) {
	d := newDoor(t, false)
	for _, path := range []string{"/", d.base, d.base + "/", d.base + "/runs", d.base + "/static/style.css", d.base + "/live", "/favicon.ico", d.base + "/?token=", d.base + "/?token=guess", d.base + "/runs?token=" + d.plain} {
		if w := d.ask("GET", path, nil, nil); w.Code != http.StatusForbidden || d.reached != 0 {
			t.Errorf("GET %s without a cookie: %d, want 403", path, w.Code)
		}
		if w := d.ask("GET", path, &http.Cookie{Name: cookieName, Value: "guess"}, nil); w.Code != http.StatusForbidden || d.reached != 0 {
			t.Errorf("GET %s with a guessed cookie: %d, want 403", path, w.Code)
		}
	}
	cookie := d.enter(t)
	for _, path := range []string{"/", "/runs", "/static/style.css"} {
		if w := d.ask("GET", d.base+path, cookie, nil); w.Code != http.StatusOK || w.Body.String() != "inside "+path {
			t.Errorf("GET %s with the cookie: %d %q", path, w.Code, w.Body)
		}
	}
	if w := d.ask("GET", "/runs", cookie, nil); w.Code != http.StatusForbidden {
		t.Errorf("a page outside the base path: %d, want 403", w.Code)
	}
}

// A link that can be used twice could be used by whoever reads it on the screen later.
func TestLinkIsGoodOnce(t *testing.T) {
	d := newDoor(t, false)
	told := 0
	d.Used = func() { told++ }
	link, _ := url.Parse(d.Link())
	cookie := d.enter(t)
	if w := d.ask("GET", link.RequestURI(), nil, nil); w.Code != http.StatusForbidden {
		t.Errorf("the link a second time: %d, want 403", w.Code)
	}
	if w := d.ask("GET", link.RequestURI(), cookie, nil); w.Code != http.StatusSeeOther {
		t.Errorf("the link a second time in the same browser: %d, want 303 to the page", w.Code)
	}
	if d.Link() == link.String() || told != 1 {
		t.Errorf("after a link was used there is no new one (told %d times)", told)
	}
	other := d.enter(t)
	if other.Value == cookie.Value {
		t.Error("two browsers have one cookie")
	}
	for _, c := range []*http.Cookie{cookie, other} {
		if w := d.ask("GET", d.base+"/", c, nil); w.Code != http.StatusOK {
			t.Errorf("a browser that was let in: %d", w.Code)
		}
	}
	// What fetches pages before a person opens them must not use the link up.
	next, _ := url.Parse(d.Link())
	for _, method := range []string{"HEAD", "POST"} {
		d.ask(method, next.RequestURI(), nil, nil)
	}
	d.ask("GET", next.RequestURI(), nil, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch;prerender") })
	if d.Link() != next.String() {
		t.Error("a request that opens nothing has used the link up")
	}
}

func TestCookieIsStrict(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != d.base+"/" || c.Domain != "" || len(c.Value) < 50 {
		t.Errorf("the cookie is %+v, want HttpOnly, SameSite=Strict, of the base path and long", c)
	}
	w := d.ask("GET", d.base+"/", c, nil)
	if strings.Contains(w.Body.String(), c.Value) {
		t.Error("a page holds the cookie's value")
	}
}

func TestOldestBrowserGoesFirst(t *testing.T) {
	d := newDoor(t, false)
	first := d.enter(t)
	var last *http.Cookie
	for range maxSessions {
		last = d.enter(t)
	}
	if w := d.ask("GET", d.base+"/", first, nil); w.Code != http.StatusForbidden {
		t.Errorf("the oldest of %d browsers: %d, want 403", maxSessions+1, w.Code)
	}
	if w := d.ask("GET", d.base+"/", last, nil); w.Code != http.StatusOK {
		t.Errorf("the latest browser: %d", w.Code)
	}
}

// A page whose name was made to point at this machine sends that name (DNS rebinding).
func TestHostIsChecked(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	for host, want := range map[string]int{
		"127.0.0.1:7878": 200, "localhost:7878": 200, "LOCALHOST:7878": 200,
		"evil.example.org": 403, "evil.example.org:7878": 403, "127.0.0.1": 403, "127.0.0.1:7879": 403, "localhost": 403, "localhost.evil.example.org:7878": 403, "": 403,
	} {
		w := d.ask("GET", d.base+"/", c, func(r *http.Request) { r.Host = host })
		if w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
	link, _ := url.Parse(d.Link())
	if w := d.ask("GET", link.RequestURI(), nil, func(r *http.Request) { r.Host = "evil.example.org:7878" }); w.Code != http.StatusForbidden || d.Link() != link.String() {
		t.Error("the link was used by way of another name")
	}
}

func TestOtherPagesAreRefused(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	for site, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
		w := d.ask("GET", d.base+"/runs", c, func(r *http.Request) {
			if site != "" {
				r.Header.Set("Sec-Fetch-Site", site)
			}
		})
		if w.Code != want {
			t.Errorf("GET with Sec-Fetch-Site %q: %d, want %d", site, w.Code, want)
		}
	}
}

func TestChangesComeFromOurForms(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	csrf := d.sessions[0].csrf
	other := d.enter(t)
	for _, row := range []struct {
		name, origin, site, host, csrf string
		cookie                         *http.Cookie
		want                           int
	}{
		{"our form", "http://127.0.0.1:7878", "same-origin", "", csrf, c, 200},
		{"our form, as a browser without Sec-Fetch sends it", "http://127.0.0.1:7878", "", "", csrf, c, 200},
		{"our form, its origin withheld with the referrer", "null", "same-origin", "", csrf, c, 200},
		{"by the other name", "http://localhost:7878", "same-origin", "localhost:7878", csrf, c, 200},
		{"names mixed", "http://localhost:7878", "", "", csrf, c, 403},
		{"no sign of where it comes from", "", "", "", csrf, c, 403},
		{"a sandboxed frame", "null", "cross-site", "", csrf, c, 403},
		{"an origin withheld, nothing else known", "null", "", "", csrf, c, 403},
		{"another site", "https://evil.example.org", "cross-site", "", csrf, c, 403},
		{"another port of this machine", "http://127.0.0.1:9999", "same-site", "", csrf, c, 403},
		{"another scheme", "https://127.0.0.1:7878", "same-origin", "", csrf, c, 403},
		{"typed by hand", "null", "none", "", csrf, c, 403},
		{"no form token", "http://127.0.0.1:7878", "same-origin", "", "", c, 403},
		{"another browser's form token", "http://127.0.0.1:7878", "same-origin", "", csrf, other, 403},
		{"no cookie", "http://127.0.0.1:7878", "same-origin", "", csrf, nil, 403},
	} {
		before := d.reached
		r := httptest.NewRequest("POST", "http://"+d.addr+d.base+"/runs/x/stop", strings.NewReader(url.Values{"csrf": {row.csrf}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if row.origin != "" {
			r.Header.Set("Origin", row.origin)
		}
		if row.site != "" {
			r.Header.Set("Sec-Fetch-Site", row.site)
		}
		if row.host != "" {
			r.Host = row.host
		}
		if row.cookie != nil {
			r.AddCookie(row.cookie)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != row.want || (d.reached > before) != (row.want == 200) {
			t.Errorf("%s: %d, want %d", row.name, w.Code, row.want)
		}
	}
	// The token counts in the form alone: addresses are kept in histories.
	r := httptest.NewRequest("POST", "http://"+d.addr+d.base+"/runs/x/stop?csrf="+csrf, nil)
	r.Header.Set("Origin", "http://"+d.addr)
	r.AddCookie(c)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("the form token in the address: %d, want 403", w.Code)
	}
}

func TestReadOnlyRefusesChanges(t *testing.T) {
	d := newDoor(t, true)
	c := d.enter(t)
	r := httptest.NewRequest("POST", "http://"+d.addr+d.base+"/runs/x/stop", strings.NewReader("csrf="+d.sessions[0].csrf))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+d.addr)
	r.AddCookie(c)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || d.reached != 0 || !strings.Contains(w.Body.String(), "--read-only") {
		t.Errorf("a change where nothing may be changed: %d %q", w.Code, w.Body)
	}
	if w := d.ask("GET", d.base+"/", c, nil); w.Code != http.StatusOK {
		t.Errorf("reading: %d", w.Code)
	}
}

func TestMethodsAndSizes(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		if w := d.ask(method, d.base+"/", c, nil); w.Code != http.StatusMethodNotAllowed || d.reached != 0 {
			t.Errorf("%s: %d, want 405", method, w.Code)
		}
	}
	r := httptest.NewRequest("POST", "http://"+d.addr+d.base+"/x", strings.NewReader("csrf="+d.sessions[0].csrf+"&text="+strings.Repeat("x", maxForm)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+d.addr)
	r.AddCookie(c)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || d.reached != 0 {
		t.Errorf("a form over the limit: %d, want 413", w.Code)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	d := newDoor(t, false)
	c := d.enter(t)
	link, _ := url.Parse(d.Link())
	for name, w := range map[string]*httptest.ResponseRecorder{
		"inside": d.ask("GET", d.base+"/", c, nil), "outside": d.ask("GET", "/", nil, nil), "link": d.ask("GET", link.RequestURI(), nil, nil),
		"foreign host": d.ask("GET", "/", nil, func(r *http.Request) { r.Host = "evil.example.org" }),
	} {
		h := w.Result().Header
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if h.Get(key) != want {
				t.Errorf("%s: %s is %q, want %q", name, key, h.Get(key), want)
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", name, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") || strings.Contains(csp, "data:") {
			t.Errorf("%s: the policy %q lets in too much", name, csp)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other pages may read it", name)
		}
	}
}
