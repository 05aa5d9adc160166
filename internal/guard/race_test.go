//go:build race

package guard

// slower is how much more time everything takes.
const slower = 20
