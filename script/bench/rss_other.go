//go:build !unix

package main

import "os"

// childRSS is not known here.
func childRSS(*os.ProcessState) string { return "unknown" }

// spent is not known here.
func spent(*os.ProcessState) (cost, bool) { return cost{}, false }
