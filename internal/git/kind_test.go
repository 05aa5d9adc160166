package git

import "testing"

// TestKindIsRight: a wrong kind sends a person to look in the wrong place.
func TestKindIsRight(t *testing.T) {
	for msg, want := range map[string]error{
		"fatal: Unable to create '/m/.git/index.lock': File exists.":                                                     ErrLocked,
		"fatal: cannot lock ref 'HEAD': Unable to create '/m/.git/HEAD.lock': File exists.\n\nAnother git process seems": ErrLocked,
		"fatal: Unable to create '/m/.git/index.lock': Permission denied":                                                nil,
		" ! [remote rejected] HEAD -> main (failed to update ref)":                                                       ErrRejected,
		" ! [remote rejected] HEAD -> main (pre-receive hook declined)":                                                  nil,
		"fatal: the receiving end does not support push options\nfatal: the remote end hung up unexpectedly":             nil,
		"warning: unable to access '/x': Is a directory\nfatal: bad config line 2 in file /h/.gitconfig":                 nil,
		"fatal: unable to access 'https://example.org/m.git/': Could not resolve host: example.org":                      ErrNetwork,
		"fatal: '/nope' does not appear to be a git repository\nfatal: Could not read from remote repository.":           ErrNetwork,
	} {
		if got := kindOf(msg); got != want {
			t.Errorf("%q: got %v, want %v", msg, got, want)
		}
	}
}
