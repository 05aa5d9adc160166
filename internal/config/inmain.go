package config

import (
	"os"
	"path/filepath"
)

// InMain is the project's directory in the repository's main checkout: there stands what all
// checkouts share, such as the list of tasks. It is Root where that is in the main checkout;
// of a project below its repository's top it is the directory below the main checkout's.
func (p *Project) InMain() string {
	for d := p.Root; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			rel, err := filepath.Rel(d, p.Root)
			if err != nil {
				return p.Main
			}
			return filepath.Join(p.Main, rel)
		}
		if d == filepath.Dir(d) {
			return p.Main // no git
		}
	}
}
