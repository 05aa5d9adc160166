//go:build !unix

package guard

import (
	"os"

	"reprise/internal/durable"
)

func openNow(path string) (*os.File, error) { return durable.Open(path) }
