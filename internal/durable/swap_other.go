//go:build !linux && !darwin

package durable

import "os"

// swapAt: there is no such step here.
func swapAt(*os.File, string, *os.File, string) error { return errNoExchange }
