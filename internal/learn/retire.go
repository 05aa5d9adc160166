package learn

import (
	"encoding/json"
	"slices"
	"strings"

	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// What memory.retired events say became of an item, in MemoryData.Op.
const (
	OpForget  = "forget"
	OpCorrect = "correct" // Supersedes is what holds now
	OpDemote  = "demote"  // an entry that was promoted is out; what it was made from stays
	OpExpire  = "expire"  // ID is an ExpiryID, To the day before which is too old
	OpRestore = "restore" // that it was forgotten is taken back; Supersedes is the event that said so
)

const (
	contentPrefix = "content:"
	expiryPrefix  = "expire:"
)

// ExpiryID names a class of documents of a project, "" for those outside of any.
func ExpiryID(class recall.Class, project string) string {
	if !isProject(project) {
		project = ""
	}
	return expiryPrefix + string(class) + ":" + project
}

// retirement is what the logs say became of an item.
type retirement struct {
	stones []string // events that say that it was forgotten
	back   []string // those of them that were taken back
	over   int64    // since when something else holds
	before int64    // of a class: what is older has expired
}

// gone says that the item is forgotten. Which event is taken back is named, so that
// neither the order nor the clocks of two machines matter.
func (r retirement) gone() bool {
	return slices.ContainsFunc(r.stones, func(id string) bool { return !slices.Contains(r.back, id) })
}

// retirements by the hash of the item's id.
type retirements map[string]retirement

// add takes in a row. The order of rows does not matter.
func (r retirements) add(value []byte) {
	var row goneRow
	if json.Unmarshal(value, &row) != nil || row.ID == "" {
		return
	}
	key := sign.Hash(row.ID)
	at := r[key]
	switch {
	case row.Over > 0:
		if at.over == 0 || row.Over < at.over {
			at.over = row.Over
		}
	case row.Before > 0:
		at.before = max(at.before, row.Before)
	case row.Back != "":
		at.back = append(at.back, row.Back)
	default:
		at.stones = append(at.stones, row.Event)
	}
	r[key] = at
}

// retirementOf is what the logs say became of one item.
func retirementOf(tx Tx, id string) (retirement, error) {
	r := retirements{}
	err := tx.EachKV(bucketRow, rowGone+"\t"+sign.Hash(id)+"\t", func(_ string, value []byte) bool {
		r.add(value)
		return true
	})
	return r[sign.Hash(id)], err
}

func (r retirements) forgotten(id string) bool { return r[sign.Hash(id)].gone() }

// expired says that a document is older than its class is kept.
func (r retirements) expired(d recall.Doc) bool {
	if len(r) == 0 {
		return false
	}
	return nanos(d.Time) < r[sign.Hash(ExpiryID(ExpiresAs(d), d.Project))].before
}

// ExpiresAs is the class by whose retention a document is kept: a correction is
// told as what holds, but it was worked out from a session as its episodes are.
func ExpiresAs(d recall.Doc) recall.Class {
	if d.Class == recall.ClassProfile && d.Session != "" {
		return recall.ClassEpisode
	}
	return d.Class
}

// supersede marks a document in whose place a correction stands.
func (r retirements) supersede(d *recall.Doc) {
	if over := r[sign.Hash(d.ID)].over; over > 0 {
		d.Status, d.Until = recall.Superseded, timeOf(over)
	}
}

// alsoMadeBy puts on the list of work who makes documents that are retired by
// something else than their id; ok says that id is such a thing.
func (f *folder) alsoMadeBy(id string) (ok bool, err error) {
	switch {
	case strings.HasPrefix(id, contentPrefix):
		docs, err := f.tx.ByKey(id)
		for _, d := range docs {
			if err == nil {
				err = f.ownerOf(sign.Hash(d.ID))
			}
		}
		return true, err
	case strings.HasPrefix(id, expiryPrefix):
		var owners []string
		err := f.tx.EachKV(bucketMade, "", func(key string, _ []byte) bool {
			owners = append(owners, key)
			return true
		})
		for _, o := range owners {
			if err == nil {
				err = f.mark(o)
			}
		}
		return true, err
	}
	return false, nil
}

// ContentKey is what something that was worked out has in common with what
// would be worked out from another record of the same session, such as its
// transcript that is imported again: "content:" and a hash. It is empty for what
// stands over sessions, whose id says all.
func ContentKey(d recall.Doc) string {
	data, ok := DataOf(d)
	if !ok || d.Session == "" {
		return ""
	}
	return contentOf(d.Session, data)
}

func contentOf(session string, d Data) string {
	return contentPrefix + sign.Hash(d.Kind, session, d.Task, d.Tool, d.Target, d.Inputs, d.Exact, d.SaidKey)
}
