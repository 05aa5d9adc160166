package quick

import (
	"strconv"
	"strings"
	"time"
)

// hookTime is the member of an event's data that says how long its hook had taken, in
// µs, when its line was made. It is the last one, so that it can be had without reading
// what a tool was given and said.
const hookTime = `"hook_us":`

// WithHookTime puts how long a hook took so far into the data of its event, an object or
// nothing. A time below 0, of a clock that was set back, is left out.
func WithHookTime(data []byte, took time.Duration) []byte {
	switch end := len(data) - 1; {
	case took < 0:
		return data
	case end < 1:
		data = append(data[:0], '{')
	case data[end] != '}':
		return data
	case data[end-1] == '{':
		data = data[:end]
	default:
		data[end] = ','
	}
	return append(strconv.AppendInt(append(data, hookTime...), took.Microseconds(), 10), '}')
}

// HookTime is what [WithHookTime] put into an event's data; ok is false where there is
// nothing. Words of others cannot pass for it: within a text a quote has a backslash, and
// within another object the brackets are two.
func HookTime(data []byte) (took time.Duration, ok bool) {
	tail := string(data[max(0, len(data)-len(hookTime)-24):])
	at := strings.LastIndex(tail, hookTime)
	if at < 1 || tail[at-1] != ',' && tail[at-1] != '{' || !strings.HasSuffix(tail, "}") {
		return 0, false
	}
	us, err := strconv.ParseInt(tail[at+len(hookTime):len(tail)-1], 10, 64)
	if err != nil || us < 0 || us > int64(24*time.Hour/time.Microsecond) {
		return 0, false
	}
	return time.Duration(us) * time.Microsecond, true
}
