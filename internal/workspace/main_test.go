package workspace_test

import (
	"os"
	"testing"

	"reprise/internal/durable/durabletest"
)

// What these tests write is small and gone in a moment: it need not wait for a disk.
func TestMain(m *testing.M) { os.Exit(durabletest.InMemory(m.Run)) }
