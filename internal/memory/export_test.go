package memory

import "reprise/internal/mdfile"

func mdparse(b []byte) (*mdfile.File, error) { return mdfile.Parse(b) }
