package git

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// LeftOut says that a file is outside of what a sparse checkout has, so that the next merge or
// switch takes it off the disk; name is its path from the top, where this Git is. It is false
// where the patterns are no directories (without --cone), which are not read here.
func (g *Git) LeftOut(ctx context.Context, name string) (bool, error) {
	admin := adminAround(g.dir)
	if admin == "" {
		return false, nil
	}
	data, err := durable.Read(filepath.Join(admin, "info", "sparse-checkout"))
	if err != nil { // as a rule there is none
		return false, nil
	}
	out, err := g.Run(ctx, "config", "--type=bool", "--default=false", "--get", "core.sparseCheckout")
	if err != nil || strings.TrimSpace(string(out)) != "true" {
		return false, err
	}
	whole, files := map[string]bool{}, map[string]bool{} // directories: all below them, or the files in them
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		not := strings.HasPrefix(line, "!")
		dir := strings.TrimPrefix(line, "!")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(dir, "/") || strings.ContainsAny(strings.TrimSuffix(dir, "/*/"), "*?[\\") && dir != "/*":
			return false, nil
		case dir == "/*":
			whole["."] = true
		case not && strings.HasSuffix(dir, "/*/"):
			dir = path.Clean(strings.TrimSuffix(strings.TrimPrefix(dir, "/"), "*/"))
			files[dir] = true
			delete(whole, dir)
		case !not && strings.HasSuffix(dir, "/"):
			whole[strings.Trim(dir, "/")] = true
		default:
			return false, nil
		}
	}
	dir := path.Dir(name)
	if files[dir] {
		return false, nil
	}
	for ; !whole[dir]; dir = path.Dir(dir) {
		if dir == "." || dir == "/" {
			return true, nil
		}
	}
	return false, nil
}
