package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The forms in which a person gives a day or a time, in the zone of the machine.
var dayForms = []string{time.RFC3339, "2006-01-02", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02 15:04:05"}

// pastTime reads a time that has been, as people say it: how long ago (36h, 7d, 2w),
// a day (today, yesterday, 2026-11-28) or a moment. "" is the zero time. The error
// names the flag.
func pastTime(app *App, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := app.Now()
	if d, ok := lengthOfTime(text); ok {
		return now.Add(-d.Abs()), nil
	}
	if t, ok := dayOrMoment(text, now); ok {
		return t, nil
	}
	return time.Time{}, usagef("%s %q is no time: give how long ago (36h, 7d, 2w), a day (yesterday, 2026-11-28) or a moment (2026-11-28T09:30)", flag, text)
}

// comingTime reads a time to come: how long from now (90m, 2d), a day (tomorrow,
// 2026-11-28) or a moment. The error names the flag.
func comingTime(app *App, flag, text string) (time.Time, error) {
	now := app.Now()
	if d, ok := lengthOfTime(text); ok {
		if d < 0 {
			return time.Time{}, usagef("%s %q lies in the past", flag, text)
		}
		return now.Add(d), nil
	}
	if t, ok := dayOrMoment(text, now); ok {
		return t, nil
	}
	return time.Time{}, usagef("%s %q is no time: give how long from now (90m, 12h, 2d), a day (tomorrow, 2026-11-28) or a moment (2026-11-28T22:00)", flag, text)
}

// lengthOfTime is time.ParseDuration with whole or broken days and weeks.
func lengthOfTime(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, true
	}
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, is := strings.CutSuffix(text, unit)
		if !is {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		// More than a hundred years is a slip, and would leave what a duration can hold.
		if err != nil || !(n > -36500 && n < 36500) || n*float64(length) > float64(100*365*24*time.Hour) || n*float64(length) < -float64(100*365*24*time.Hour) {
			return 0, false
		}
		return time.Duration(n * float64(length)), true
	}
	return 0, false
}

func dayOrMoment(text string, now time.Time) (time.Time, bool) {
	days := map[string]int{"yesterday": -1, "today": 0, "tomorrow": 1}
	if off, ok := days[strings.ToLower(text)]; ok {
		y, m, d := now.Date()
		return time.Date(y, m, d+off, 0, 0, 0, 0, now.Location()), true
	}
	for _, form := range dayForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// ago is a time as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
