//go:build !race

package guard

// slower is how much more time everything takes; see race_test.go.
const slower = 1
