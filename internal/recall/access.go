package recall

import "strings"

// MayRead says whether an access list names the reader; an empty one is of
// everybody.
func (r Reader) MayRead(acl []string) bool {
	if r.All || len(acl) == 0 {
		return true
	}
	for _, a := range acl {
		kind, name, _ := strings.Cut(a, ":")
		if a == "*" || name != "" && (kind == "agent" && (name == r.Agent || name == r.Keeps) || kind == "role" && name == r.Role || kind == "client" && name == r.Client) {
			return true
		}
	}
	return false
}
