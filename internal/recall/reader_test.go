package recall

import "testing"

func TestPlaceOfADirectory(t *testing.T) {
	for dir, want := range map[string]string{
		"/w/misc": "dir:/w/misc", "/w/misc/": "dir:/w/misc", "/w/./x/../misc": "dir:/w/misc", "/": "dir:/",
		`C:\w\misc\`: `dir:C:\w\misc`, `C:/w/misc`: `dir:C:\w\misc`, `C:\`: `dir:C:\`, "misc": "", "": "", ".": "",
	} {
		if got := Place(dir); got != want {
			t.Errorf("%q is %q, want %q", dir, got, want)
		}
	}
	if Where("shop") != "project shop" || Where("dir:/w") != "in /w" || Where("") != "" {
		t.Error(Where("shop"), Where("dir:/w"), Where(""))
	}
}
