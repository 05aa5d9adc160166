package staterepo_test

import (
	"testing"

	"reprise/internal/staterepo"
)

func TestCheckLearning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Always run `just check` before committing - pre-commit hooks catch issues":       "",
		"The `workspace.go` file is the central abstraction - start there when debugging": "",
		"JWT tokens need both expiry AND signature validation - learned from auth bug":    "",
		"Added tokens are cached for five minutes, so a test must wait or clear them":     "",
		"Fixed the login: tokens need both checks":                                        "",
		"The port of staging is 6543":                                                     "",
		"Moved to Postgres because SQLite locks":                                          "",
		"テストの前に必ずデータベースを起動する":                                                             "",
		"Removed entries stay in the index until it is built again; don't trust a count":  "",
		"Added function X":                       "log",
		"- Fixed typo":                           "log",
		"I've just implemented the export.":      "log",
		"We added retries to the client":         "log",
		"fix(auth): validate the expiry":         "log",
		"feat!: export":                          "log",
		"The export was implemented and merged":  "log",
		"Tests have been written for the parser": "log",
		"All handlers are now documented":        "log",
		"## Refactored the router\n\nInto three": "log",
		"検証を追加しました。":                             "log",
		"x":                                      "words",
		"use pnpm":                               "words",
		"":                                       "words",
		"1 2 3 4 5":                              "words",
	} {
		d := staterepo.CheckLearning(text)
		got := ""
		switch {
		case d.Log != nil:
			got = "log"
		case d.Why != "":
			got = "words"
		}
		if got != want {
			t.Errorf("%q: %q (%s), want %q", text, got, d.Why, want)
		}
		if d.Log != nil && (d.Log.Text != text || d.Log.Type == "") {
			t.Errorf("%q: %+v", text, d.Log)
		}
	}
}
