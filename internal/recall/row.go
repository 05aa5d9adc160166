package recall

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// The row number of a document says, without a look at the document, what a
// query may leave it out by:
//
//	28 bits  minutes since 1970 of Doc.Time, so that rows are in order of time
//	11 bits  from the hash of the id
//	 4 bits  class
//	 2 bits  status
//	10 bits  hash of who may see it: everyone, a project, a session
//	 8 bits  words in the document, roughly
//
// It depends on the document alone and so is the same after a rebuild, but for
// numbers that were taken: those of many documents of one time (sections of
// files have a day, or none) are spread over the day that follows.
const (
	lenBits, visBits, statusBits, classBits, discBits = 8, 10, 2, 4, 11

	visShift    = lenBits
	statusShift = visShift + visBits
	classShift  = statusShift + statusBits
	discShift   = classShift + classBits
	timeShift   = discShift + discBits
	maxMinute   = 1<<28 - 1
)

const otherClass = 1<<classBits - 1

func classCode(c Class) int64 {
	switch c {
	case ClassCore:
		return 1
	case ClassIndex:
		return 2
	case ClassBlock:
		return 3
	case ClassDecision:
		return 4
	case ClassLearning:
		return 5
	case ClassEpisode:
		return 6
	case ClassPattern:
		return 7
	case ClassAntiPattern:
		return 8
	case ClassSummary:
		return 9
	case ClassAnswer:
		return 10
	case ClassState:
		return 11
	case ClassProfile:
		return 12
	}
	return otherClass
}

func statusCode(s Status) int64 {
	switch s {
	case Active:
		return 0
	case Superseded:
		return 1
	case Candidate:
		return 2
	}
	return 3
}

func minuteOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return min(max(t.Unix()/60, 0), maxMinute)
}

// audience names those who may see a document, as far as its scope says. Two
// documents with one audience are seen by the same readers but for the ACL.
func audience(scope, project, session string) string {
	switch scope {
	case scopeSession:
		return "s:" + session
	case scopeProject:
		return "p:" + project
	}
	return "g"
}

const scopeSession, scopeProject, scopeGlobal = "session", "project", "global"

func hash64(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func audienceCode(a string) int64 { return int64(hash64(a) & (1<<visBits - 1)) }

func rowOf(d *Doc, length int) int64 {
	return minuteOf(d.Time)<<timeShift | int64(hash64(d.ID)&(1<<discBits-1))<<discShift | classCode(d.Class)<<classShift |
		statusCode(d.Status)<<statusShift | audienceCode(audience(d.Scope, d.Project, d.Session))<<visShift | packLength(length)
}

// spread is over how many minutes taken numbers are spread at most.
const spread = 24 * 60

// otherRow is a number to try where row, or the one tried last, is taken.
func otherRow(row, minute int64, id string, try int) int64 {
	h := hash64(id + "\x00" + strconv.Itoa(try))
	m := minute + int64((h>>32)%uint64(min(spread, 1<<min(2*try, 20))))
	return row&(1<<discShift-1) | int64(h&(1<<discBits-1))<<discShift | min(m, maxMinute)<<timeShift
}

// packLength keeps a document's length in a byte: exact below 128, then in
// steps of about six per cent.
func packLength(n int) int64 {
	if n < 128 {
		return int64(n)
	}
	return int64(min(255, 128+int(math.Log2(float64(n)/128)*12)))
}

func unpackLength(row int64) float64 {
	n := row & 0xff
	if n < 128 {
		return float64(n)
	}
	return 128 * math.Exp2(float64(n-128)/12)
}

// ftsRow is the row in the table fts of a row of docs, and the other way round.
func ftsRow(row int64) int64 { return math.MaxInt64 - row }

// Words of the column f. They begin with a "#", which no word of a text has.

func audienceWord(a string) string { return "#v" + strconv.FormatUint(hash64(a), 36) }

func classWord(c Class) string { return "#c" + strconv.FormatUint(hash64(string(c)), 36) }

// aclWord is for one entry of an ACL; "" and "*" are everyone.
func aclWord(entry string) string {
	if entry == "" || entry == "*" {
		return "#aall"
	}
	return "#a" + strconv.FormatUint(hash64(entry), 36)
}
