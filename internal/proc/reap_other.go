//go:build !linux

package proc

// BecomeSubreaper does nothing: only Linux has subreapers.
func BecomeSubreaper() error { return nil }

// ReapOrphans does nothing: without a subreaper nobody is inherited.
func ReapOrphans() (int, error) { return 0, nil }

// NothingLeft is always false: without a subreaper one must look.
func NothingLeft() bool { return false }

func adoptedBy(int, []info) map[int]bool { return nil }
