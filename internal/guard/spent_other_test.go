//go:build !unix

package guard

import "time"

var began = time.Now()

// spent is how long this process has run, where its processor time is not to be had.
func spent() time.Duration { return time.Since(began) / 10 }
