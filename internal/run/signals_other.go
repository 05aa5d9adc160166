//go:build !unix

package run

import "os"

// StopSignals are the signals that ask a program of ours to end.
func StopSignals() []os.Signal { return []os.Signal{os.Interrupt} }
