// Command empty is the yardstick of what is started often: a Go program that
// does nothing. It reads and writes no file and takes no lock.
package main

func main() {}
