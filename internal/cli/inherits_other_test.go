//go:build !linux

package cli_test

// inherits has nothing to report: only Linux has subreapers.
func inherits() error { return nil }
