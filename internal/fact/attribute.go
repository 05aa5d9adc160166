package fact

// kind is what the values of an attribute look like.
type kind int

const (
	kindNone   kind = iota
	kindWord        // a name of a thing: main, eu-west-1
	kindNumber      // with or without a unit: 30 s, 200
	kindPort
	kindVersion
	kindURL
	kindPerson
	kindTime // a day, a date or a time of day
)

// attribute tells what the word before "is" or "of" asks for, by the one name
// that its synonyms share.
func attribute(w []byte) (string, kind) {
	switch string(w) {
	case "port":
		return "port", kindPort
	case "version":
		return "version", kindVersion
	case "owner", "maintainer":
		return "owner", kindPerson
	case "lead", "manager", "contact", "reviewer", "approver", "author", "assignee":
		return string(w), kindPerson
	case "timeout", "ttl", "interval", "retention", "deadline", "delay", "frequency", "cadence":
		if string(w) == "deadline" {
			return "deadline", kindTime
		}
		return string(w), kindNumber
	case "limit", "maximum", "max", "minimum", "min", "quota", "budget", "threshold", "concurrency", "replicas", "retries", "workers",
		"capacity", "price", "age", "height", "weight", "size":
		return string(w), kindNumber
	case "url", "endpoint", "website", "homepage", "webhook":
		return "url", kindURL
	case "host", "hostname", "domain", "server":
		return "host", kindURL
	case "email", "e-mail":
		return "email", kindURL
	case "branch", "region", "database", "schema", "bucket", "queue", "topic", "table", "namespace", "license", "licence", "language",
		"framework", "locale", "timezone", "currency", "codename", "path", "directory", "prefix", "username", "profession", "hometown",
		"nickname", "colour", "color", "breed", "nationality", "editor", "theme", "encoding", "shell", "formatter", "linter":
		switch string(w) {
		case "licence":
			return "license", kindWord
		case "color":
			return "colour", kindWord
		}
		return string(w), kindWord
	case "birthday", "anniversary", "standup", "stand-up":
		return string(w), kindTime
	}
	return "", kindNone
}

// fits says that a value is of the attribute's kind.
func fits(k kind, v []byte, words int, upper bool) bool {
	if len(v) == 0 {
		return false
	}
	switch k {
	case kindPort:
		n := digits(string(v))
		return n == len(v) && n >= 2 && n <= 5
	case kindVersion:
		i := 0
		if v[0] == 'v' {
			i = 1
		}
		return words == 1 && i < len(v) && v[i] >= '0' && v[i] <= '9'
	case kindNumber:
		i := 0
		if v[0] == '$' || v[0] == '<' {
			i = 1
		}
		return words <= 3 && i < len(v) && (v[i] >= '0' && v[i] <= '9' || string(v) == "unlimited")
	case kindURL:
		if words != 1 {
			return false
		}
		for i := 1; i+1 < len(v); i++ {
			if v[i] == '.' || v[i] == ':' || v[i] == '@' || v[i] == '-' {
				return true
			}
		}
		return false
	case kindPerson:
		return words <= 3 && (upper || v[0] == '@')
	case kindTime:
		return words <= 4 && isTime(v)
	case kindWord:
		return words <= 2
	}
	return false
}

// isTime says that the value begins with a day of the week, a month, a number
// that is a date or a time.
func isTime(v []byte) bool {
	if v[0] >= '0' && v[0] <= '9' {
		return true
	}
	for i, c := range v {
		if c == ' ' {
			v = v[:i]
			break
		}
	}
	if weekday(v) != "" {
		return true
	}
	switch string(v) {
	case "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
		"daily", "weekly", "monthly", "midnight", "noon", "every":
		return true
	}
	return false
}

// weekday gives the one spelling of a day of the week.
func weekday(w []byte) string {
	switch string(w) {
	case "monday", "mondays", "mon", "月曜", "月曜日":
		return "monday"
	case "tuesday", "tuesdays", "tue", "火曜", "火曜日":
		return "tuesday"
	case "wednesday", "wednesdays", "wed", "水曜", "水曜日":
		return "wednesday"
	case "thursday", "thursdays", "thu", "木曜", "木曜日":
		return "thursday"
	case "friday", "fridays", "fri", "金曜", "金曜日":
		return "friday"
	case "saturday", "saturdays", "sat", "土曜", "土曜日":
		return "saturday"
	case "sunday", "sundays", "sun", "日曜", "日曜日":
		return "sunday"
	}
	return ""
}

// category is what a tool is one of, of which a project normally uses one.
func category(w []byte) string {
	switch string(w) {
	case "npm", "pnpm", "yarn", "bun":
		return "package manager"
	case "pip", "poetry", "uv", "pipenv", "conda", "pdm", "rye":
		return "python package manager"
	case "jest", "vitest", "mocha", "ava":
		return "test runner"
	case "pytest", "unittest", "nose":
		return "python test runner"
	case "postgres", "postgresql", "mysql", "mariadb", "sqlite", "mongodb", "dynamodb", "cockroachdb":
		return "database"
	case "tabs", "spaces", "タブ", "スペース":
		return "indentation"
	case "prettier", "biome", "dprint":
		return "formatter"
	case "webpack", "vite", "rollup", "parcel", "esbuild", "turbopack":
		return "bundler"
	case "gradle", "maven", "bazel", "ant":
		return "build tool"
	case "jenkins", "circleci", "gitlab-ci", "buildkite", "travis":
		return "ci"
	case "slack", "teams", "discord", "mattermost":
		return "chat"
	case "jira", "linear", "asana", "trello":
		return "tracker"
	case "terraform", "pulumi", "opentofu":
		return "infrastructure"
	case "black", "yapf", "autopep8":
		return "python formatter"
	}
	return ""
}

// sameThing joins the names of one tool.
func sameThing(w string) string {
	switch w {
	case "postgresql":
		return "postgres"
	case "golang":
		return "go"
	case "nodejs", "node.js":
		return "node"
	case "k8s":
		return "kubernetes"
	case "タブ":
		return "tabs"
	case "スペース":
		return "spaces"
	}
	return w
}
