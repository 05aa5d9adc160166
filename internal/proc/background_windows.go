package proc

import "golang.org/x/sys/windows"

// Background has this process give way to others: it is at work that nobody waits for.
func Background() error {
	return windows.SetPriorityClass(windows.CurrentProcess(), windows.BELOW_NORMAL_PRIORITY_CLASS)
}
