//go:build !linux

package durabletest

// InMemory runs tests as they are: here no directory is in memory.
func InMemory(run func() int) int { return run() }
