package lexicon

import (
	"strings"
	"testing"
	"time"
)

var day0 = time.Date(2024, 5, 1, 9, 0, 0, 0, time.UTC)

func TestDatesOf(t *testing.T) {
	at := time.Date(2023, 5, 10, 15, 0, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"in June 2023": "2023-06-01..2023-07-01", "on 16 May": "2023-05-16..2023-05-17", "the tenth of June": "2023-06-10..2023-06-11",
		"June 3, 2022": "2022-06-03..2022-06-04", "2022-11-05": "2022-11-05..2022-11-06", "back in 2021": "2021-01-01..2022-01-01",
		"yesterday": "2023-05-09..2023-05-10", "last Friday": "2023-05-05..2023-05-06", "next Monday": "2023-05-15..2023-05-16",
		"three days ago": "2023-05-07..2023-05-08", "two years ago": "2021-01-01..2022-01-01", "last month": "2023-04-01..2023-05-01",
		"２０２４年３月２０日": "2024-03-20..2024-03-21", "昨日": "2023-05-09..2023-05-10", "I may march to the second floor": "", "it may 5 or so": "2023-05-05..2023-05-06",
		"on 45 June": "2023-06-01..2023-07-01", "99999999999999999999 ago": "",
	} {
		var got []string
		for _, s := range DatesOf(text, at) {
			got = append(got, s.From.Format(time.DateOnly)+".."+s.To.Format(time.DateOnly))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", text, got, want)
		}
	}
}

func FuzzDates(f *testing.F) {
	for _, s := range []string{"", "31 February 2024", "12月99日", "0月", "last last", "ago ago", "年月日", "May", "9999-99-99", "\xff月"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, at := range []time.Time{{}, day0} {
			for _, d := range DatesOf(s, at) {
				if !d.From.Before(d.To) {
					t.Fatalf("%q gives a span from %s to %s", s, d.From, d.To)
				}
				if n := d.Nearness(day0); n < 0 || n > 1 {
					t.Fatalf("%q: nearness %f", s, n)
				}
			}
		}
	})
}
