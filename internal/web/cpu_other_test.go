//go:build !unix

package web

import "time"

// processorTime is told by systems that have getrusage.
func processorTime() time.Duration { return 0 }
