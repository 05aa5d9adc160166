package proc

import "bytes"

// environAfterArgs finds the environment in what macOS's KERN_PROCARGS2 gives
// after its leading argument count: the program's path, NUL padding, argc
// arguments, then the environment, each ended by NUL.
func environAfterArgs(argc int, b []byte) []byte {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return nil
	}
	b = bytes.TrimLeft(b[i:], "\x00")
	for ; argc > 0; argc-- {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return nil
		}
		b = b[i+1:]
	}
	return b
}

// markerIn returns the run id in an environment block of NUL-divided entries.
// Only an entry that is exactly RunIDVar=… counts: the text may well stand in
// the middle of another variable of a stranger.
func markerIn(environ []byte) string {
	prefix := []byte(RunIDVar + "=")
	for len(environ) > 0 {
		entry, rest, _ := bytes.Cut(environ, []byte{0})
		if v, ok := bytes.CutPrefix(entry, prefix); ok {
			return string(v)
		}
		environ = rest
	}
	return ""
}
