package verify

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"reprise/internal/config"
	"reprise/internal/verify/tree"
)

// Wish is somebody's word on which profile to use: whose it is, and which. An
// empty one, or "auto", is no wish.
type Wish struct{ By, Profile string }

// riskOf is what a change puts at risk. sub is the project's root below the
// tree's top.
func riskOf(v *config.Verify, c tree.Change, sub string) RiskSeen {
	r := RiskSeen{Known: true, Files: len(c.Paths), Lines: c.Lines}
	for _, p := range c.Paths {
		if sub != "" {
			var ok bool
			if p, ok = strings.CutPrefix(p, sub+"/"); !ok {
				continue
			}
		}
		if protected(v.Protected, p) && len(r.Protected) < 10 {
			r.Protected = append(r.Protected, p)
		}
	}
	return r
}

// protected reports whether a path, or a directory that it is in, has one of the
// patterns. A pattern without a slash fits a name at any depth.
func protected(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		bare := strings.TrimSuffix(pattern, "/")
		for d := p; d != "." && d != "/"; d = path.Dir(d) {
			name := d
			if !strings.Contains(bare, "/") {
				name = path.Base(d)
			}
			if d == p && strings.HasSuffix(pattern, "/") {
				continue // it means a directory, and this is a file
			}
			if ok, err := doublestar.Match(bare, name); err == nil && ok {
				return true
			}
		}
		return false
	})
}

// Choose picks a profile: the first wish, else by the risk of the change. What
// cannot be compared with anything gets the middle one. Where nothing is defined up
// to it, it is the larger one whose checks then run.
func Choose(v *config.Verify, risk RiskSeen, wishes ...Wish) (profile, why string) {
	profile, why = choose(v, risk, wishes)
	if used := v.Used(profile); used != profile {
		return used, why + "; no check is " + profile + ", so it is " + used
	}
	return profile, why
}

const nothingKnown = "there is nothing to compare the tree with"

func choose(v *config.Verify, risk RiskSeen, wishes []Wish) (profile, why string) {
	for _, w := range wishes {
		if w.Profile != "" && w.Profile != "auto" {
			return w.Profile, w.By
		}
	}
	if !risk.Known {
		return "standard", nothingKnown
	}
	if len(risk.Protected) > 0 {
		return "deep", "a protected path changed: " + risk.Protected[0]
	}
	profiles := config.VerifyProfiles()
	for i := len(profiles) - 1; i > 0; i-- {
		t := v.Risk[i]
		switch {
		case t.Files > 0 && risk.Files >= t.Files:
			return profiles[i], fmt.Sprintf("%s changed, from %d on it is %s", several(risk.Files, "file"), t.Files, profiles[i])
		case t.Lines > 0 && risk.Lines >= t.Lines:
			return profiles[i], fmt.Sprintf("%s changed, from %d on it is %s", several(risk.Lines, "line"), t.Lines, profiles[i])
		}
	}
	if risk.Files == 0 {
		return profiles[0], "nothing changed"
	}
	return profiles[0], fmt.Sprintf("a small change: %s, %s", several(risk.Files, "file"), several(risk.Lines, "line"))
}

func several(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	if strings.HasSuffix(of, "s") {
		of += "e"
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// covers reports whether what passed under one profile has passed under the
// other, too.
func covers(have, want string) bool {
	p := config.VerifyProfiles()
	return slices.Index(p, have) >= slices.Index(p, want)
}

// Reviewer is one who can be asked to review work, as a model or an agent.
type Reviewer struct {
	Name string
	// Cost orders reviewers, the cheapest first; Strength is the riskiest profile
	// that the reviewer is good enough for.
	Cost     int
	Strength string
}

// ChooseReviewers are the reviewers to ask, in this order: the cheapest that is
// strong enough for the profile's risk, then stronger ones, to whom an unsure
// answer is put. wish, where it is not empty, names the only one.
func ChooseReviewers(all []Reviewer, profile, wish string) []Reviewer {
	if wish != "" {
		i := slices.IndexFunc(all, func(r Reviewer) bool { return r.Name == wish })
		if i < 0 {
			return nil
		}
		return all[i : i+1]
	}
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b Reviewer) int { return a.Cost - b.Cost })
	strong := slices.DeleteFunc(slices.Clone(out), func(r Reviewer) bool { return !covers(r.Strength, profile) })
	if len(strong) > 0 {
		return strong
	}
	// None is made for so much risk: the strongest there is.
	if len(out) > 0 {
		return out[len(out)-1:]
	}
	return nil
}
