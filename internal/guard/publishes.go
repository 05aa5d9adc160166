package guard

import (
	"slices"
	"strings"
	"unicode"
)

// What a tool of the project's can be told to do is not all tests and builds: the same words
// send what was built to others, or clear a database. Neither can be taken back, so that both
// are asked about, whatever the user lets the project's code do.

// publishes judges the words of a build tool or of a framework's own command.
func (a *analysis) publishes(program string, words []word) {
	for i, w := range words {
		text := strings.Trim(w.text, ", ")
		if i > 0 && (words[i-1].text == "--tests" || words[i-1].text == "-t") || strings.HasPrefix(text, "-") || !w.known() {
			continue // the name of a test, an option, or what is asked about in any case
		}
		var reason string
		switch program {
		case "mvn", "mvnw", "mvnw.cmd", "mvnd":
			reason = ofMaven(text)
		case "gradle", "gradlew", "gradlew.bat", "sbt", "rake":
			reason = ofTask(text[strings.LastIndexAny(text, ":/+")+1:])
			if strings.HasPrefix(program, "gradle") && len(text) > 2 && strings.HasPrefix("publish", text) {
				reason = sends // a task may be named by its beginning
			}
			if program == "rake" {
				reason = ofDatabase(text) + reason
			}
		case "make", "gmake", "just", "task", "mage", "invoke", "npm", "pnpm", "yarn", "bun", "deno", "composer", "tox", "nox":
			// A name that the project gave to a script of its own: what it says is believed.
			if !strings.ContainsAny(text, "=/") && (text != "release" || !strings.HasSuffix(program, "make")) {
				reason = ofTask(text)
			}
		case "lein":
			if text == "deploy" || text == "release" || text == "vcs" {
				reason = sends
			}
		case "rails", "artisan", "sequelize", "sequelize-cli", "typeorm", "manage.py":
			reason = ofDatabase(text)
			if strings.HasPrefix(text, "credentials:") || strings.HasPrefix(text, "secrets:") || strings.HasPrefix(text, "encrypted:") {
				a.otherCode(w, "it shows or changes secrets", "let the user do it")
				return
			}
			if i == 0 && slices.Contains([]string{"runner", "r", "console", "c", "dbconsole", "db", "tinker", "shell", "shell_plus", "dbshell"}, text) {
				a.otherCode(w, "it runs what it is given, and not the project's code", "put it into a file of the project")
				return
			}
		case "prisma":
			if text == "reset" || text == "push" || text == "deploy" {
				reason = clears
			}
		case "buf", "golangci-lint", "changeset", "lerna", "semantic-release", "vsce", "wrangler", "vercel", "netlify", "firebase", "gh-pages", "np", "release-it", "serverless", "sls", "cdk", "surge":
			if i == 0 && slices.Contains([]string{"push", "registry", "custom", "publish", "deploy", "release", "delete", "destroy", "rollback", "remove", "unpublish"}, text) {
				reason = sends
			}
		}
		if reason != "" {
			a.otherCode(w, reason, "let the user do it, or allow it by a rule")
			return
		}
	}
	if len(words) == 0 && slices.Contains([]string{"semantic-release", "np", "release-it", "gh-pages", "surge", "vercel"}, program) {
		a.otherCode(word{text: program}, sends, "let the user do it, or allow it by a rule")
	}
}

const (
	sends  = "it sends what the project makes to others"
	clears = "it clears a database, or changes it for good"
)

// ofMaven is what speaks against a phase or a goal.
func ofMaven(text string) string {
	plugin, goal, isGoal := strings.Cut(text, ":")
	switch {
	case !isGoal:
		if text == "deploy" || text == "site-deploy" {
			return sends
		}
	case slices.Contains([]string{"release", "scm", "wagon", "deploy", "nexus-staging", "central-publishing", "jreleaser", "jib", "site-deploy", "gitflow", "jgitflow"}, plugin) && goal != "dockerBuild" && goal != "buildTar":
		return sends
	case plugin == "dependency" && (goal == "get" || goal == "copy" || goal == "purge-local-repository"), plugin == "archetype", plugin == "install":
		return "it gets what is named from another machine, or puts it beside the project"
	case plugin == "flyway" && (goal == "clean" || goal == "undo"), plugin == "liquibase" && (strings.HasPrefix(goal, "drop") || strings.HasPrefix(goal, "rollback")), plugin == "sql":
		return clears
	default:
		return ofTask(goal)
	}
	return ""
}

// ofTask is what speaks against a task whose name is written in humps: assembleRelease makes
// something, releasePlugin sends it.
func ofTask(name string) string {
	low := strings.ToLower(name)
	if strings.ContainsAny(name, "*.? ") || strings.HasSuffix(low, "mavenlocal") || strings.HasPrefix(low, "publishlocal") || low == "publishm2" {
		return "" // a pattern of tests, and what stays on this machine
	}
	parts := humps(name)
	for i, p := range parts {
		switch p {
		case "publish", "upload", "deploy", "undeploy", "push", "bintray":
			return sends
		case "release", "promote":
			if i == 0 || parts[i-1] == "and" {
				return sends
			}
		case "jib":
			if len(parts) == 1 {
				return sends
			}
		case "drop":
			return clears
		case "clean":
			if i > 0 && parts[i-1] == "flyway" {
				return clears
			}
		}
	}
	return ""
}

// humps are the words of a name, in small letters.
func humps(name string) []string {
	var out []string
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || strings.ContainsRune("-_:", r)) {
			out = append(out, strings.ToLower(strings.Trim(name[start:i], "-_:")))
			start = i
		}
	}
	return append(out, strings.ToLower(strings.Trim(name[start:], "-_:")))
}

// ofDatabase is what speaks against a framework's own command.
func ofDatabase(text string) string {
	switch text {
	case "flush", "reset_db", "db:drop", "db:reset", "db:purge", "db:setup", "db:schema:load", "db:structure:load", "db:migrate:reset", "db:seed:replant", "db:drop:all", "db:rollback",
		"migrate:fresh", "migrate:refresh", "migrate:reset", "migrate:rollback", "db:wipe", "db:truncate_all", "schema:drop", "db:migrate:undo", "db:migrate:undo:all":
		return clears
	}
	return ""
}
