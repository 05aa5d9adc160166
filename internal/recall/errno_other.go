//go:build !unix

package recall

func isReadOnly(error) bool { return false }
func isNotDir(error) bool   { return false }
func isFull(error) bool     { return false }
