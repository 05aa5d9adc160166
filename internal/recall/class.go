package recall

import (
	"cmp"
	"slices"
	"strings"
)

// standing is how much stands behind a document by what it is, in [0,1]: what
// somebody wrote down or a gate let through, what was seen again and again or a
// person said, what was seen once, and what was only talked about.
func standing(d *Doc) float64 {
	switch d.Class {
	case ClassDecision, ClassLearning, ClassProfile:
		return 1
	case ClassPattern, ClassAntiPattern, ClassAnswer:
		return 0.7
	case ClassCore, ClassIndex, ClassBlock:
		return 0.5
	case ClassEpisode:
		switch {
		case d.Confidence == 0: // nobody worked it out: a conversation that was put here
			return 0.5
		case aFailure(d):
			return 0.4
		case d.Author == "user": // a correction
			return 0.7
		}
	}
	return 0
}

// aFailure says that a document is of a failure: it has that one's signature among its
// keys, and the finer one ("key=value") always. Other keys say what a document was made
// of, or is part of.
func aFailure(d *Doc) bool {
	return slices.ContainsFunc(d.Keys, func(k string) bool { return strings.Contains(k, "=") })
}

// byClass raises what more stands behind. It comes after the qualities were
// judged: it says which of those that match is better, and not whether one does.
func (r *ranking) byClass() {
	w := r.w[weightClass]
	for _, d := range r.docs {
		v := w * standing(&d.Doc)
		if d.score > 0 {
			d.score *= max(1+v, 0.01)
		}
		if d.signals != nil && v != 0 {
			d.signals[weightTable[weightClass].name] = round(v)
		}
	}
}

// curated says that a document is an entry: short because somebody made it so.
func curated(c Class) bool { return c == ClassDecision || c == ClassLearning || c == ClassProfile }

// alone says that a document says all that there is to it, and that what stands
// beside it is no context of it: an entry, and what was worked out from events.
func alone(d *Doc) bool {
	return curated(d.Class) || d.Class == ClassSummary || d.Class == ClassEpisode && d.Confidence > 0
}

// sameTitle is the share of a title's words that another one has, from which on
// a document says nothing of a failure that the other does not. What helped stands
// in the title: two remedies are two things to say.
const sameTitle = 0.8

// once leaves of those that say the same the one that most stands behind: an
// entry before the pattern that it was made of, that before its episodes. It
// gets the place of the best placed of them.
func (r *ranking) once(fit []*scoredDoc, out *Answer) []*scoredDoc {
	order := make([]int, len(fit))
	titles := make([][]uint32, len(fit))
	for i, d := range fit {
		order[i], titles[i] = i, shingles(d.Title)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(standing(&fit[j].Doc), standing(&fit[i].Doc)), cmp.Compare(fit[j].Confidence, fit[i].Confidence))
	})
	heads := make([]int, len(fit)) // who speaks for each
	place := make([]int, len(fit)) // of those who speak: the best of whom they speak for
	for n, i := range order {
		heads[i], place[i] = i, i
		for _, j := range order[:n] {
			a, b := &fit[i].Doc, &fit[j].Doc
			switch {
			case !oneThing(a, b, titles[i], titles[j]) || heads[j] == heads[i]:
			case heads[i] == i:
				heads[i] = heads[j]
			case oneThing(b, a, titles[j], titles[i]): // j says what i says, and i's head says it, too
				old := heads[j]
				for k := range heads {
					if heads[k] == old && slices.Contains(order[:n], k) {
						heads[k] = heads[i]
					}
				}
			}
		}
	}
	for i, h := range heads {
		place[h] = min(place[h], i)
	}
	kept := make([]*scoredDoc, len(fit))
	for i, d := range fit {
		win := fit[heads[i]]
		kept[place[heads[i]]] = win
		if win != d {
			win.score, win.quality, win.exact = max(win.score, d.score), max(win.quality, d.quality), win.exact || d.exact
			out.Dropped[d.ID] = dropDuplicate
		}
	}
	return slices.DeleteFunc(kept, func(d *scoredDoc) bool { return d == nil })
}

// oneThing says that a adds nothing to b.
func oneThing(a, b *Doc, aTitle, bTitle []uint32) bool {
	if slices.Contains(a.Keys, b.ID) || slices.Contains(b.Keys, a.ID) {
		return true
	}
	if !aboutFailure(a) || !aboutFailure(b) || (a.Class == ClassAntiPattern) != (b.Class == ClassAntiPattern) {
		return false
	}
	return sharedKey(a.Keys, b.Keys) && within(aTitle, bTitle) >= sameTitle
}

func aboutFailure(d *Doc) bool {
	return d.Class == ClassEpisode || d.Class == ClassPattern || d.Class == ClassAntiPattern
}

// sharedKey says that two documents have a key in common; where both have finer
// ones (key=value) of it, one of those.
func sharedKey(a, b []string) bool {
	finer := func(keys []string, k string) bool {
		return slices.ContainsFunc(keys, func(s string) bool { return strings.HasPrefix(s, k+"=") })
	}
	return slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) && !(finer(a, k) && finer(b, k)) })
}

// within is the share of a sorted set that another one has.
func within(a, b []uint32) float64 {
	n := len(a)
	if n == 0 {
		return 0
	}
	return float64(common(a, b)) / float64(n)
}
