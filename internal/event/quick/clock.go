package quick

import (
	"bytes"
	"strconv"
	"time"
)

// clockSlack is how far the time of an event may be ahead of now before that is
// taken for a clock that went back: corrections by milliseconds are common and
// change nothing.
const clockSlack = 2 * time.Second

// lineTime is the time of the event on a line of a log, zero where it has none
// in its beginning, as [Encode] writes it.
func lineTime(line []byte) time.Time {
	_, rest, ok := bytes.Cut(line[:min(len(line), 200)], []byte(`"ts":"`))
	if !ok {
		return time.Time{}
	}
	text, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

// idTime is the time in an id that [IDs] made, to the millisecond; zero for
// other texts.
func idTime(id string) time.Time {
	if len(id) != 36 || id[8] != '-' || id[14] != '7' {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// wentBack reports a clock that is behind the time of something that was
// recorded before.
func wentBack(before, now time.Time) bool { return before.Sub(now) > clockSlack }

// backBeyond is the time of the event that e belongs to, where that is in a
// later month than e itself: in the file that e goes to nothing shows it.
func backBeyond(e *Event) (time.Time, bool) {
	before := idTime(e.Parent)
	return before, wentBack(before, e.TS) && FileName(before, "") > FileName(e.TS, "")
}

// BackText says that the clock went back, for a log.
func BackText(before, now time.Time) string {
	return "an event of " + before.UTC().Format(time.RFC3339) + " is recorded already, and now it is " + now.UTC().Format(time.RFC3339) +
		"; events go on to be recorded by the clock, and are put in order by it"
}
