//go:build !linux

package git

import "time"

func gitsIn(string, time.Time) (working, known bool) { return false, false }
