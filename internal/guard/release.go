package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// released asks about the words by which a build tool sends what it has built to others, or
// empties a database: those are the tool's own tasks, and nothing takes them back. tool is its
// name, words what it is given.
func (a *analysis) released(tool string, words []word) {
	for i, w := range words {
		if w.known() && releases(tool, strings.Trim(w.text, ", "), i) {
			a.otherCode(w, "it publishes what is built, or empties a database, and nothing takes that back", "let the user run it")
		}
	}
}

// releases tells whether a word, the one with that number, is such a task of a tool.
func releases(tool, text string, at int) bool {
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(text, p) })
	}
	switch tool {
	case "mvn", "mvnw", "mvnw.cmd", "mvnd":
		return text == "deploy" || text == "site-deploy" ||
			has("release:", "scm:", "wagon:", "deploy:", "site:deploy", "flyway:", "liquibase:", "nexus-staging:", "central-publishing:", "jgitflow:", "gitflow:", "sql:", "docker:push", "jib:build", "cargo:", "jreleaser:")
	case "gradle", "gradlew", "gradlew.bat":
		task := strings.ToLower(text[strings.LastIndexByte(text, ':')+1:])
		if strings.HasPrefix(text, "-") || strings.HasSuffix(task, "tomavenlocal") {
			return false
		}
		text = task
		// A task may be named by its beginning.
		return has("publish", "upload", "release", "deploy", "closeandrelease", "promote", "flyway", "liquibase", "dropall", "bintray", "artifactorypublish", "dockerpush", "jreleaser") ||
			text == "jib" || text == "pub" || len(text) > 3 && slices.ContainsFunc([]string{"publish", "upload", "release", "deploy"}, func(t string) bool { return strings.HasPrefix(t, text) })
	case "sbt":
		task := strings.TrimLeft(text, "+")
		text = task[strings.LastIndexAny(task, "/:")+1:]
		return has("publish", "release", "sonatype", "dockerBuildAndPush") && !strings.HasPrefix(text, "publishLocal") && text != "publishM2" || strings.HasPrefix(task, "docker:publish") && text != "publishLocal"
	case "lein":
		return text == "deploy" || text == "release"
	case "rake", "rails":
		return has("db:drop", "db:reset", "db:purge", "db:truncate_all", "db:seed:replant", "db:schema:load", "db:structure:load", "db:migrate:reset", "release") ||
			at == 0 && slices.Contains([]string{"runner", "r", "console", "c", "dbconsole", "db"}, text)
	case "buf":
		return at == 0 && (text == "push" || text == "registry" || text == "beta")
	case "golangci-lint":
		return at == 0 && text == "custom"
	case "manage.py":
		return at == 0 && slices.Contains([]string{"flush", "shell", "shell_plus", "dbshell", "reset_db", "sqlflush", "runscript"}, text)
	}
	return false
}

// ownReleases is released for a program of the project that is a tool's: gradlew, bin/rails, or
// manage.py, that python is given.
func (a *analysis) ownReleases(words []word) {
	if len(words) == 0 {
		return
	}
	a.released(filepath.Base(words[0].text), words[1:])
}
