package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"reprise/internal/queue"
	"reprise/internal/term"
	"reprise/internal/web/gate"
)

//go:embed templates static
var files embed.FS

// pages are the parsed templates: each page with the layout and the shared parts.
type pages struct {
	byName map[string]*template.Template
}

// navItem is an entry of the navigation.
type navItem struct {
	ID, Name, Path string
}

// view is what every template gets: who asks, where it is, and the page's own data.
type view struct {
	Base     string // path before all others, without a slash at the end
	CSRF     string
	ReadOnly bool
	Project  string
	Version  string
	Nav      []navItem
	Here     string // ID of the part that is shown
	Title    string
	Note     string // what a change came to
	Now      time.Time
	Data     any
}

// With is the view with other data, for a part of a page that is a template of its own.
func (v view) With(data any) view {
	v.Data = data
	return v
}

// Tone is the tone in which an outcome is shown.
func (view) Tone(outcome string) string { return outcomeClass(outcome) }

// Acts says whether a person can do something about items in a state, in a list of them.
func (view) Acts(state queue.State) bool { return state == queue.Dead || state == queue.Blocked }

// Stands is the tone in which the status of an entry or agent is shown.
func (view) Stands(status string) string { return statusTone(status) }

func parsePages(now func() time.Time) (*pages, error) {
	shared, err := template.New("layout").Funcs(funcs(now)).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("make the dashboard: %w", err)
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("make the dashboard: %w", err)
	}
	p := &pages{byName: map[string]*template.Template{}}
	for _, name := range names {
		stem := strings.TrimSuffix(path.Base(name), ".html")
		if stem == "layout" || stem == "parts" {
			continue
		}
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(files, name)
		}
		if err != nil {
			return nil, fmt.Errorf("make the dashboard: %w", err)
		}
		p.byName[stem] = t
	}
	return p, nil
}

// execute is a template of a page as it is sent. What an eye cannot see or what turns
// the direction of writing is shown as an escape, wherever it came from; nothing of
// ours contains any.
func (p *pages) execute(page, part string, v any) ([]byte, error) {
	t := p.byName[page]
	if t == nil {
		return nil, fmt.Errorf("show %s: there is no such template", page)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, part, v); err != nil {
		return nil, fmt.Errorf("show %s: %w", page, err)
	}
	return []byte(term.SafeText(b.String())), nil
}

func (s *Server) view(r *http.Request, here, title string, data any) view {
	at := gate.VisitOf(r)
	return view{
		Base: at.Base, CSRF: at.CSRF, ReadOnly: at.ReadOnly, Project: s.deps.Project, Version: s.deps.Version,
		Nav: s.nav, Here: here, Title: title, Note: notes[r.URL.Query().Get("done")], Now: s.deps.Now(), Data: data,
	}
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, page string, v view) {
	s.showAs(w, r, http.StatusOK, page, v)
}

func (s *Server) showAs(w http.ResponseWriter, r *http.Request, status int, page string, v view) {
	body, err := s.pages.execute(page, "page", v)
	if err != nil {
		s.deps.Log.Error("a page of the dashboard could not be made", "path", r.URL.Path, "error", err.Error())
		http.Error(w, "This page could not be made; reprise's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who asked has gone, if it cannot be written
}

// fail answers with a page that says what went wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.showAs(w, r, status, "error", s.view(r, "", "Not done", s.errorPage(r, status, err)))
}

// failBare is fail for one who has not been let in: nothing of this installation is
// in it.
func (s *Server) failBare(w http.ResponseWriter, r *http.Request, status int, err error) {
	body, terr := s.pages.execute("error", "bare", view{Title: "Not let in", Data: errorPage{Status: status, Text: sentence(err)}})
	if terr != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// sentence is an error as people read it.
func sentence(err error) string {
	text := strings.TrimSpace(err.Error())
	if text == "" {
		return "Something went wrong."
	}
	first, rest := text[:1], text[1:]
	return strings.ToUpper(first) + rest
}

// done sends the browser back to a page after a change, which says what was done. The
// page is named by a fixed word, so that an address shows no other text.
func (s *Server) done(w http.ResponseWriter, r *http.Request, to, note string) {
	at := gate.VisitOf(r)
	target := at.Base + to
	if note != "" {
		sep := "?"
		if strings.Contains(to, "?") {
			sep = "&"
		}
		path, fragment, has := strings.Cut(target, "#")
		target = path + sep + "done=" + note
		if has {
			target += "#" + fragment
		}
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// static serves the stylesheet, the script and the icon.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)]
	data, err := files.ReadFile("static/" + name)
	if err != nil || kind == "" {
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such file"))
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(data)
}
