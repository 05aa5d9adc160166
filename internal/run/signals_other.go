//go:build !unix

package run

import "os"

// StopSignals are the signals that ask a program of ours to end.
func StopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// politeStop: no signal here makes a supervisor stop its run.
var politeStop os.Signal

// wakeUp does nothing: processes are not stopped here.
func wakeUp(Record) error { return nil }
