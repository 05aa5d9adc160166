package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// thin keeps the thousands of a number apart, and no line breaks at it.
const thin = "\u202f"

// Num is a whole number with its thousands apart.
func Num(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + thin + s[i:]
	}
	return s
}

// Plural is so many of something that is more than one by an s.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Num(int64(n)) + " " + one + "s"
}

// USD is an amount of US dollars, without their name: with cents, or as far as what is
// less than a cent needs.
func USD(f float64) string {
	switch {
	case f == 0:
		return "0"
	case math.Abs(f) < 0.01:
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// Took is a length of time in one or two units; a second one that is nought is left out.
func Took(d time.Duration) string {
	two := func(a int, unit string, b int, small string) string {
		if b == 0 {
			return fmt.Sprintf("%d %s", a, unit)
		}
		return fmt.Sprintf("%d %s %d %s", a, unit, b, small)
	}
	switch {
	case d < 0:
		return "-" + Took(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case d < time.Hour:
		return two(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Ago is how long ago something was, in one unit.
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + Took(-d)
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// Size is a number of bytes as people say it, in units of 1024.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return Plural(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
