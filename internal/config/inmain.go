package config

import "path/filepath"

// InMain is the project's directory in the repository's main checkout: there stands what all
// checkouts share, such as the list of tasks. It is Root where that is in the main checkout;
// of a project below its repository's top it is the directory below the main checkout's.
func (p *Project) InMain() string {
	top, _, err := gitTop(p.Root)
	if err != nil || top == "" {
		return p.Main
	}
	rel, err := filepath.Rel(top, p.Root)
	if err != nil {
		return p.Main
	}
	return filepath.Join(p.Main, rel)
}
