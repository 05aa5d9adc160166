package queue_test

import "testing"

// dropsRoot: on Windows directories have no write bit, so there is nothing to try.
func dropsRoot(t *testing.T) bool {
	t.Skip("permission bits of directories mean nothing on Windows")
	return false
}
