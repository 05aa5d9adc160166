package sign

import (
	"path"
	"strings"
)

// A command line is read here to know what it acts on, not to decide whether it
// may run: what this misreads costs a match and nothing else. Therefore no full
// parser, which would be most of the time that an event takes.

// simple is one simple command of a line: words without quotes, redirections
// and assignments left out.
type simple struct {
	words []string
	piped bool // it reads from the one before it
}

// splitShell divides a command line into its simple commands.
func splitShell(line string) []simple {
	var out []simple
	var words []string
	var w strings.Builder
	inWord, piped, skip := false, false, false
	endWord := func() {
		if !inWord {
			return
		}
		if skip {
			skip = false
		} else {
			words = append(words, w.String())
		}
		w.Reset()
		inWord = false
	}
	endCommand := func(nextPiped bool) {
		endWord()
		skip = false
		if len(words) > 0 {
			out = append(out, simple{words: words, piped: piped})
			words = nil
		}
		piped = nextPiped
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch c {
		case '\\':
			if i+1 < len(line) {
				i++
				if line[i] != '\n' {
					inWord = true
					w.WriteByte(line[i])
				}
			}
		case '\'', '"':
			inWord = true
			for i++; i < len(line) && line[i] != c; i++ {
				if c == '"' && line[i] == '\\' && i+1 < len(line) {
					i++
				}
				w.WriteByte(line[i])
			}
		case ' ', '\t':
			endWord()
		case '\n', ';':
			endCommand(false)
		case '&', '|':
			if c == '&' && i+1 < len(line) && line[i+1] == '>' || c == '&' && i > 0 && (line[i-1] == '>' || line[i-1] == '<') {
				inWord = true
				w.WriteByte(c)
				continue
			}
			double := i+1 < len(line) && line[i+1] == c
			if double {
				i++
			}
			endCommand(c == '|' && !double)
		case '>', '<':
			if strings.HasPrefix(line[i:], "<<") { // a here document is data
				endCommand(false)
				return out
			}
			if isDigits(w.String()) || w.String() == "&" {
				w.Reset()
				inWord = false
			}
			endWord()
			for i+1 < len(line) && (line[i+1] == '>' || line[i+1] == ' ' || line[i+1] == '&') {
				i++
			}
			skip = true
		case '(', ')', '{', '}':
			if inWord {
				w.WriteByte(c)
				continue
			}
			endWord()
		case '#':
			if !inWord {
				for i+1 < len(line) && line[i+1] != '\n' {
					i++
				}
				continue
			}
			w.WriteByte(c)
		default:
			inWord = true
			w.WriteByte(c)
		}
	}
	endCommand(false)
	return out
}

// bare takes away what stands before the command proper: assignments, sudo,
// time limits, runners.
func bare(words []string) []string {
	for len(words) > 0 {
		w := words[0]
		name := path.Base(w)
		switch {
		case isAssignment(w):
			words = words[1:]
		case name == "timeout" || name == "nice" || name == "stdbuf" || name == "ionice":
			words = words[1:]
			for len(words) > 0 && (strings.HasPrefix(words[0], "-") || isDigits(strings.TrimRight(words[0], "smhd"))) {
				words = words[1:]
			}
		case name == "sudo" || name == "env" || name == "time" || name == "nohup" || name == "command" || name == "exec" || name == "xvfb-run" || name == "doas":
			words = words[1:]
			for len(words) > 0 && strings.HasPrefix(words[0], "-") {
				words = words[1:]
			}
		case (name == "npx" || name == "bunx") && len(words) > 1:
			words = words[1:]
			for len(words) > 1 && strings.HasPrefix(words[0], "-") {
				words = words[1:]
			}
		case (name == "uv" || name == "poetry" || name == "pipenv" || name == "rye" || name == "hatch") && len(words) > 2 && words[1] == "run",
			name == "bundle" && len(words) > 2 && words[1] == "exec",
			(name == "python" || name == "python3" || name == "py") && len(words) > 2 && words[1] == "-m",
			name == "pnpm" && len(words) > 2 && (words[1] == "exec" || words[1] == "dlx"):
			words = words[2:]
		case (name == "bash" || name == "sh" || name == "zsh") && len(words) > 2 && (words[1] == "-c" || words[1] == "-lc"):
			inner := splitShell(words[2])
			if len(inner) == 0 {
				return words
			}
			return mainOf(inner)
		default:
			return words
		}
	}
	return words
}

func isAssignment(w string) bool {
	i := strings.IndexByte(w, '=')
	if i <= 0 {
		return false
	}
	for j := range i {
		if !isWordByte(w[j]) {
			return false
		}
	}
	return w[0] < '0' || w[0] > '9'
}

// trivial commands prepare or show; they are not what a line is for.
func trivial(words []string) bool {
	if len(words) == 0 {
		return true
	}
	switch path.Base(words[0]) {
	case "cd", "pushd", "popd", "echo", "printf", "true", "false", ":", "set", "export", "unset", "source", ".", "sleep", "wait", "exit", "ulimit", "umask", "pwd", "date", "if", "then", "fi", "else", "do", "done", "for", "while", "trap", "clear", "test", "[", "[[":
		return true
	}
	return false
}

// mainOf is the command that a line is for: the last that is not trivial and
// that reads from none before it.
func mainOf(list []simple) []string {
	var last []string
	for _, c := range list {
		if c.piped {
			continue
		}
		if w := bare(c.words); !trivial(w) {
			last = w
		}
	}
	if last == nil {
		for _, c := range list {
			if w := bare(c.words); len(w) > 0 {
				last = w
			}
		}
	}
	return last
}

// subcommands says how many words of a program name what it does.
func subcommands(program string, words []string) int {
	switch program {
	case "git", "cargo", "pip", "pip3", "brew", "apt", "apt-get", "dnf", "yum", "pacman", "systemctl", "terraform", "helm", "kubectl", "oc", "uv", "poetry",
		"bundle", "gem", "rails", "dotnet", "deno", "rustup", "conda", "mamba", "composer", "mix", "flutter", "dart", "swift", "zig", "stack", "cabal",
		"vagrant", "ansible-galaxy", "aws", "gcloud", "az", "gh", "glab", "heroku", "fly", "vercel", "wrangler", "docker", "podman", "docker-compose", "go",
		"npm", "pnpm", "yarn", "bun", "prisma", "supabase", "firebase", "alembic", "manage.py", "nx", "turbo", "lerna", "ng", "nest", "expo", "ruff", "hg", "svn", "reprise":
		n := 1
		if len(words) > 0 {
			switch first := words[0]; {
			case program == "go" && (first == "mod" || first == "work" || first == "tool"),
				(program == "npm" || program == "pnpm" || program == "yarn" || program == "bun") && (first == "run" || first == "workspace"),
				program == "docker" && (first == "compose" || first == "container" || first == "image" || first == "volume" || first == "network" || first == "buildx"),
				program == "git" && (first == "remote" || first == "stash" || first == "submodule" || first == "worktree" || first == "bisect"),
				program == "gh", program == "glab", program == "aws", program == "gcloud", program == "az",
				program == "uv" && first == "pip", program == "prisma" && first == "migrate", program == "dotnet" && first == "ef":
				n = 2
			}
		}
		return n
	}
	return 0
}

// takesValue reports whether a flag of a program is followed by a value that is
// no operand.
func takesValue(program, flag string) bool {
	if strings.Contains(flag, "=") {
		return false
	}
	var list string
	switch program {
	case "go":
		list = " -run -bench -count -timeout -tags -o -C -p -cpu -fuzz -fuzztime -benchtime -coverprofile -ldflags -gcflags -mod -exec -parallel -skip -coverpkg -cpuprofile -memprofile -covermode "
	case "git":
		list = " -C -c -m -b -B -F --author --date -n --git-dir --work-tree "
	case "make":
		list = " -C -j -f -l "
	case "docker", "podman", "docker-compose":
		list = " -f -t -p -e -v -w -u --name --file --tag --platform --build-arg --env --volume --network -H "
	case "npm", "pnpm", "yarn", "bun":
		list = " --prefix -w --workspace -C --filter -F --dir --cwd "
	case "pytest", "py.test":
		list = " -k -m -n -c -o -p --maxfail --tb --cov --timeout --rootdir "
	case "cargo":
		list = " -p --package --manifest-path --features -F --test --bin --example -j --target --color -Z --profile "
	case "kubectl", "helm", "oc":
		list = " -n --namespace -f -o -l --context -c --container --tail --timeout "
	case "curl", "wget":
		list = " -H -d -X -o -u -A -b -c --data --header --request --output --max-time -m --connect-timeout -w "
	case "gcc", "g++", "clang", "cc", "c++":
		list = " -o -I -L -D -x -std "
	case "jest", "vitest":
		list = " -t --testNamePattern -c --config --reporter "
	case "tsc", "eslint", "prettier", "mypy", "ruff":
		list = " -p --project -c --config --ext --format -o --config-file "
	case "python", "python3", "node":
		list = " -c -e -r --require -W "
	case "terraform":
		list = " -var -var-file -target -chdir "
	case "psql", "mysql", "sqlite3":
		list = " -h -U -d -p -P -u -c -e -f "
	case "ssh", "scp", "rsync":
		list = " -p -i -P -o -e "
	}
	return strings.Contains(list, " "+flag+" ")
}

// Target is what a command line acts on: program, subcommand and main
// operand, such as "go test ./internal/x". Flags are no part of it: a fix is
// often a flag.
func Target(line, cwd string) string {
	return targetOf(mainOf(splitShell(line)), cwd)
}

func targetOf(words []string, cwd string) string {
	if len(words) == 0 {
		return ""
	}
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe")
	if strings.HasPrefix(words[0], "./") || strings.HasPrefix(words[0], "../") {
		program = words[0]
	}
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && subcommands(program, nil) > 0 {
		if takesValue(program, rest[0]) && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	parts := []string{program}
	for n := subcommands(program, rest); n > 0 && len(rest) > 0; n-- {
		parts = append(parts, normalOperand(rest[0], cwd))
		rest = rest[1:]
		for n > 1 && len(rest) > 0 && strings.HasPrefix(rest[0], "-") { // docker compose -f dev.yaml up
			if takesValue(program, rest[0]) && len(rest) > 1 {
				rest = rest[1:]
			}
			rest = rest[1:]
		}
	}
	if operand := mainOperand(program, rest); operand != "" {
		parts = append(parts, normalOperand(operand, cwd))
	}
	return Clip(strings.Join(parts, " "), 120)
}

func mainOperand(program string, rest []string) string {
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		switch {
		case w == "--" || w == "":
			continue
		case strings.HasPrefix(w, "-") && w != "-":
			if takesValue(program, w) {
				i++
			}
			continue
		case w == "-" || isAssignment(w):
			continue
		case strings.Contains(w, "\n") || len(w) > 100:
			return "" // a script or a message, no name of anything
		}
		return w
	}
	return ""
}

// normalOperand is an operand without the place it is seen from and without
// ids and numbers.
func normalOperand(w, cwd string) string {
	w = strings.TrimSuffix(w, "/")
	if rel := Relative(w, cwd); rel != "" {
		return rel
	}
	if strings.Contains(w, "://") || IsUUID(w) || isHex(w) || isTime(w) || isAddr(w) || isDigits(w) {
		return NormalWord(w, "")
	}
	if strings.HasPrefix(w, "/tmp/") || strings.HasPrefix(w, "/var/folders/") {
		return holeTemp
	}
	return strings.Join(strings.Fields(w), " ")
}

// Relative is a path as seen from the directory, or "" where it is not in it.
func Relative(p, dir string) string {
	p, dir = strings.ReplaceAll(p, `\`, "/"), strings.TrimSuffix(strings.ReplaceAll(dir, `\`, "/"), "/")
	if dir == "" {
		return ""
	}
	if p == dir {
		return "."
	}
	if rest, ok := strings.CutPrefix(p, dir+"/"); ok {
		return rest
	}
	return ""
}

// readsOnly reports whether a command only looks: it cannot have been a fix.
func readsOnly(words []string) bool {
	if trivial(words) {
		return true
	}
	program := path.Base(words[0])
	sub := ""
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			sub = w
			break
		}
	}
	switch program {
	case "ls", "ll", "cat", "head", "tail", "less", "more", "grep", "rg", "egrep", "fgrep", "ag", "find", "fd", "tree", "wc", "which", "whereis", "type", "file", "stat", "du",
		"df", "ps", "top", "env", "whoami", "uname", "hostname", "diff", "cmp", "jq", "yq", "awk", "sort", "uniq", "cut", "tr", "basename", "dirname", "realpath", "readlink",
		"man", "help", "history", "nl", "od", "xxd", "strings", "lsof", "netstat", "ss", "id", "groups", "printenv", "bat", "column", "xargs", "ping", "dig", "nslookup", "md5sum", "sha256sum":
		return true
	case "sed":
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-i") || w == "--in-place" {
				return false
			}
		}
		return true
	case "git":
		switch sub {
		case "status", "log", "diff", "show", "blame", "branch", "remote", "rev-parse", "ls-files", "describe", "grep", "shortlog", "reflog", "config":
			return true
		}
	case "npm", "pnpm", "yarn", "pip", "pip3", "brew", "cargo", "go", "kubectl", "docker", "gh", "systemctl", "terraform", "uv", "bun":
		switch sub {
		case "ls", "list", "view", "info", "outdated", "show", "search", "tree", "metadata", "version", "env", "doc", "get", "describe", "logs", "ps", "inspect", "images", "status", "why", "help", "plan", "freeze", "check":
			return !(program == "go" && sub == "get") && !(program == "cargo" && sub == "check") && !(program == "npm" && sub == "check")
		case "":
			return program != "yarn" && program != "make" && program != "bun"
		}
	case "curl", "wget":
		for _, w := range words[1:] {
			if w == "-o" || w == "-O" || w == "-X" || w == "--request" || w == "-d" || w == "--data" {
				return false
			}
		}
		return program == "curl"
	}
	for _, w := range words[1:] {
		if w == "--version" || w == "-version" || w == "--help" || w == "-V" {
			return true
		}
	}
	return false
}

// Checks reports whether a command checks the work: running it again is no fix.
func Checks(target string) bool {
	f := strings.Fields(target)
	if len(f) == 0 {
		return false
	}
	switch f[0] {
	case "pytest", "jest", "vitest", "mocha", "tsc", "eslint", "mypy", "ruff", "tox", "rspec", "phpunit", "golangci-lint", "staticcheck", "shellcheck", "ctest", "playwright", "cypress":
		return true
	}
	for _, w := range f[1:min(len(f), 3)] {
		switch w {
		case "test", "vet", "check", "clippy", "lint", "typecheck", "test:unit", "test:e2e":
			return true
		}
	}
	return f[0] == "go" && len(f) > 1 && f[1] == "build" || f[0] == "cargo" && len(f) > 1 && f[1] == "build"
}

// Acting are the commands of a line that change something, as targets, and the
// same in their own words.
func Acting(line, cwd string) (targets, words []string) {
	for _, c := range splitShell(line) {
		if c.piped {
			continue
		}
		w := bare(c.words)
		if len(w) == 0 || readsOnly(w) {
			continue
		}
		if t := targetOf(w, cwd); t != "" {
			targets = append(targets, t)
			words = append(words, Clip(strings.Join(strings.Fields(strings.Join(w, " ")), " "), 100))
		}
	}
	return targets, words
}

// ChangedWords are the words that stand only in the one or only in the other
// command line, in their order.
func ChangedWords(before, after string) (gone, come []string) {
	a, b := lineWords(before), lineWords(after)
	count := map[string]int{}
	for _, w := range b {
		count[w]++
	}
	for _, w := range a {
		if count[w] > 0 {
			count[w]--
		} else {
			gone = append(gone, w)
		}
	}
	count = map[string]int{}
	for _, w := range a {
		count[w]++
	}
	for _, w := range b {
		if count[w] > 0 {
			count[w]--
		} else {
			come = append(come, w)
		}
	}
	return gone, come
}

// lineWords are the words of all commands of a line whose output goes nowhere
// else: "| tail -5" and "2>&1" say how it was looked at, not what was done.
func lineWords(line string) []string {
	var out []string
	for _, c := range splitShell(line) {
		if c.piped || trivial(c.words) && len(c.words) > 0 && c.words[0] != "export" && c.words[0] != "source" && c.words[0] != "." {
			continue
		}
		out = append(out, c.words...)
	}
	return out
}

// Similar reports whether a command that worked is another way of saying the
// one that failed: another program with the same rest, or the same program with
// half of the words.
func Similar(failed, worked string) bool {
	a, b := mainOf(splitShell(failed)), mainOf(splitShell(worked))
	if len(a) == 0 || len(b) == 0 || readsOnly(b) {
		return false
	}
	same := 0
	in := map[string]bool{}
	for _, w := range a[1:] {
		in[w] = true
	}
	for _, w := range b[1:] {
		if in[w] {
			same++
		}
	}
	longer := max(len(a), len(b)) - 1
	if path.Base(a[0]) == path.Base(b[0]) {
		// the same program with another subcommand is another thing
		if n := subcommands(path.Base(a[0]), a[1:]); n > 0 && len(a) > 1 && len(b) > 1 && a[1] != b[1] {
			return false
		}
		return longer > 0 && same*2 >= longer
	}
	return longer > 0 && same == longer
}
