package durabletest

import "os"

// killed: os.Process.Kill ends a process with exit code 1 there, as a failing
// test does; a test that fails says so on its own.
func killed(state *os.ProcessState) bool { return state.ExitCode() == 1 }
