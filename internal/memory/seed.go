package memory

// IsSeed reports whether core.md or index.md is as it was made, so that there
// is nothing in it to tell anybody yet.
func IsSeed(name, text string) bool {
	return name == coreFile && text == seedCore || name == indexFile && text == seedIndex
}

// isSeed is [IsSeed] for whichever lines were asked for.
func (d Doc) isSeed() bool {
	return d.Name == coreFile && d.Hash == hashOf([]byte(seedCore)) || d.Name == indexFile && d.Hash == hashOf([]byte(seedIndex))
}
