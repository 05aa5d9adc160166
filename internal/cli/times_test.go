package cli

import (
	"testing"
	"time"
)

// What people write for a time. The clock of the machine is in no zone that the
// tests know, so they have one of their own, with a day of 23 hours in it.
func TestTimesOfPeople(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no table of time zones on this machine:", err)
	}
	now := time.Date(2026, 3, 30, 9, 30, 0, 0, zone) // the day after clocks went forward
	app := &App{}
	app.Env.Now = func() time.Time { return now }
	day := func(m time.Month, d, h, min int) time.Time { return time.Date(2026, m, d, h, min, 0, 0, zone) }
	for text, want := range map[string]time.Time{
		"": {}, "36h": now.Add(-36 * time.Hour), "-36h": now.Add(-36 * time.Hour), "7d": now.Add(-7 * 24 * time.Hour),
		"2w": now.Add(-14 * 24 * time.Hour), "0.5d": now.Add(-12 * time.Hour), "today": day(3, 30, 0, 0),
		"yesterday": day(3, 29, 0, 0), "Yesterday": day(3, 29, 0, 0), "2026-03-01": day(3, 1, 0, 0),
		"2026-03-01T22:15": day(3, 1, 22, 15), "2026-03-01 22:15": day(3, 1, 22, 15),
		"2026-03-01T22:15:00Z": time.Date(2026, 3, 1, 22, 15, 0, 0, time.UTC),
	} {
		got, err := pastTime(app, "--since", text)
		if err != nil || !got.Equal(want) {
			t.Errorf("pastTime(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"soon", "d", "w", "NaNd", "Infd", "1e300w", "99999d", "2026-13-01", "7 d", "٣d"} {
		if got, err := pastTime(app, "--since", text); err == nil {
			t.Errorf("pastTime(%q) = %v, want an error", text, got)
		}
		if got, err := comingTime(app, "--not-before", text); err == nil {
			t.Errorf("comingTime(%q) = %v, want an error", text, got)
		}
	}
	for text, want := range map[string]time.Time{
		"90m": now.Add(90 * time.Minute), "2d": now.Add(48 * time.Hour), "tomorrow": day(3, 31, 0, 0), "2026-04-01 22:00": day(4, 1, 22, 0),
	} {
		got, err := comingTime(app, "--not-before", text)
		if err != nil || !got.Equal(want) {
			t.Errorf("comingTime(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := comingTime(app, "--not-before", "-1h"); err == nil {
		t.Error("a time that lies back is taken for one to come")
	}
}
