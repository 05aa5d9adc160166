package run

// NewID for the tests of this package.
func NewID() string { return newID() }
