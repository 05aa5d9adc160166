package guard

import "testing"

// With guard.writes a branch may be made where the tree stays as it is; what changes files,
// or moves a branch that is there, is asked about.
func TestBranchesAreMade(t *testing.T) {
	p := newProject(t)
	for c, want := range map[string]Decision{
		"git checkout -b x":                 Allow,
		"git checkout -q -b x":              Allow,
		"git switch -c x":                   Allow,
		"git switch --quiet -c x":           Allow,
		"git checkout -b x HEAD~3":          Ask,
		"git checkout -b x -- f":            Ask,
		"git checkout -B x":                 Ask,
		"git checkout -f -b x":              Ask,
		"git checkout --nonsense -b x":      Ask,
		"git checkout -c x":                 Ask,
		"git checkout x":                    Ask,
		"git checkout -q":                   Ask,
		"git switch -C x":                   Ask,
		"git switch -c x main":              Ask,
		"git switch -b x":                   Ask,
		"git switch -c x --discard-changes": Ask,
		"git restore f":                     Ask,
		"git stash":                         Ask,
	} {
		r := p.rules()
		r.Writes = true
		if v := r.Command(c, p.dir); v.Decision != want {
			t.Errorf("%s: %s, want %s: %s", c, v.Decision, want, v.Reason)
		}
		r.Writes = false
		if v := r.Command(c, p.dir); v.Decision == Allow {
			t.Errorf("%s: allowed where writing is not", c)
		}
	}
}

// Checks of the project's own tools are its code, and no more.
func TestChecksAreTheProjects(t *testing.T) {
	p := newProject(t)
	for _, c := range []string{"black --check .", "prettier --check .", "cargo fmt --check", "cargo fmt --all --check", "make -n test", "gmake --dry-run", "rubocop --check"} {
		for allowed, want := range map[bool]Decision{true: Allow, false: Ask} {
			r := p.rules()
			r.ProjectCode = allowed
			if v := r.Command(c, p.dir); v.Decision != want {
				t.Errorf("%s: %s, want %s: %s", c, v.Decision, want, v.Reason)
			}
		}
	}
}

// The address of a proxy may hold a password, and is a secret where it does.
func TestProxiesWithPasswords(t *testing.T) {
	p := newProject(t)
	for value, want := range map[string]Decision{"http://proxy:3128": Allow, "http://me:pw@proxy:3128": Ask, "http://me@proxy": Allow, "": Allow} {
		r := p.rules()
		r.Env = func(n string) string {
			if n == "HTTPS_PROXY" || n == "https_proxy" || n == "OTHER" {
				return value
			}
			return ""
		}
		for _, c := range []string{"printenv HTTPS_PROXY", "echo $https_proxy"} {
			if v := r.Command(c, p.dir); v.Decision != want {
				t.Errorf("%s with %q: %s, want %s: %s", c, value, v.Decision, want, v.Reason)
			}
		}
		if v := r.Command("printenv OTHER", p.dir); v.Decision != Allow {
			t.Errorf("another variable with %q: %s: %s", value, v.Decision, v.Reason)
		}
	}
}
