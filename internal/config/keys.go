package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// key is one setting: how its value is read and checked, and how it is shown.
type key struct {
	name  string // "sub_agent.sync_window_seconds"
	doc   string // one line, without a full stop
	read  func(l *loader, n ast.Node)
	value func(Settings) any // int, float64, string or []string
	words []string           // the only values that it can have; nil is any of its kind
}

// loader collects the settings of one file.
type loader struct {
	*document
	env Env
	out Settings
	set map[string]int // key → line it was set on
}

const week = 7 * 24 * 3600

// keys is the list of all settings, in the order in which they are shown.
func keys() []key {
	return slices.Concat(mainKeys(), hookKeys(), recallKeys(), learnKeys(), qaKeys(), guardKeys(), judgeKeys(), gateKeys(), loopKeys(), routeKeys(), taskKeys(), delegationKeys(), fleetKeys(), workerKeys())
}

func mainKeys() []key {
	return []key{
		intKey("sub_agent.sync_window_seconds", "seconds that spawn_agent waits before it hands off; below 30, because clients give up there",
			func(s *Settings) *int { return &s.SubAgent.SyncWindowSeconds }, 0, 29),
		intKey("sub_agent.default_timeout_seconds", "a run is stopped after this many seconds unless the call says otherwise",
			func(s *Settings) *int { return &s.SubAgent.DefaultTimeoutSeconds }, 1, week),
		intKey("sub_agent.default_max_output_tokens", "output is cut at this many tokens of about four characters",
			func(s *Settings) *int { return &s.SubAgent.DefaultMaxOutputTokens }, 1, 10_000_000),
		intKey("sub_agent.max_concurrent_agents", "runs at once",
			func(s *Settings) *int { return &s.SubAgent.MaxConcurrentAgents }, 1, 1000),
		intKey("sub_agent.job_expiry_seconds", "a finished job that nobody collects leaves the job table after this many seconds",
			func(s *Settings) *int { return &s.SubAgent.JobExpirySeconds }, 1, week),
		enumKey("sub_agent.sandbox", "whether runs are confined by the operating system: auto, off or required",
			func(s *Settings) *string { return &s.SubAgent.Sandbox }, "auto", "off", "required"),
		strKey("sub_agent.agent", "client that runs tasks: claude, codex, gemini, copilot, script or generic", func(s *Settings) *string { return &s.SubAgent.Agent }, checkClient),
		strKey("sub_agent.script_file", "file of steps that the script client plays; empty: one short answer",
			func(s *Settings) *string { return &s.SubAgent.ScriptFile }, checkPath),
		strKey("memory.directory", "where the memory is", func(s *Settings) *string { return &s.Memory.Directory }, checkDir),
		strKey("logging.file", "reprise's own log", func(s *Settings) *string { return &s.Logging.File }, checkPath),
		enumKey("logging.level", "debug, info, warn or error", func(s *Settings) *string { return &s.Logging.Level }, "debug", "info", "warn", "error"),
		intKey("logging.max_size_mb", "the log is rotated at this size, in MiB", func(s *Settings) *int { return &s.Logging.MaxSizeMB }, 1, 10_240),
		intKey("logging.max_backups", "rotated logs kept", func(s *Settings) *int { return &s.Logging.MaxBackups }, 0, 100),
		strKey("claude_cli.path", "Claude Code's program: a name to look up in PATH, or an absolute path",
			func(s *Settings) *string { return &s.ClaudeCLI.Path }, checkProgram),
		strKey("http.addr", "where the MCP server listens for HTTP, host:port", func(s *Settings) *string { return &s.HTTP.Addr }, checkAddr),
		listKey("http.allowed_origins", "web origins whose pages may call it, beside pages of its own address (another port of this machine is another origin)",
			func(s *Settings) *[]string { return &s.HTTP.AllowedOrigins }, checkOrigin),
		strKey("http.public_url", "the server's address as clients see it, where a proxy stands before it, with the path: https://host/mcp",
			func(s *Settings) *string { return &s.HTTP.PublicURL }, checkURL),
		intKey("http.limits.requests_per_minute", "requests a minute of one token; 0: as many as it likes", func(s *Settings) *int { return &s.HTTP.Limits.RequestsPerMinute }, 0, 1_000_000),
		intKey("http.limits.concurrent", "requests of one token under way at once; 0: as many as it likes", func(s *Settings) *int { return &s.HTTP.Limits.Concurrent }, 0, 100_000),
		intKey("http.limits.sessions", "sessions of one token at once", func(s *Settings) *int { return &s.HTTP.Limits.Sessions }, 1, 1000),
		intKey("http.limits.runs_at_once", "runs of one token at once; 0: as many as sub_agent.max_concurrent_agents", func(s *Settings) *int { return &s.HTTP.Limits.RunsAtOnce }, 0, 1000),
		intKey("http.limits.runs_per_day", "runs that one token may start in 24 hours; 0: as many as it likes", func(s *Settings) *int { return &s.HTTP.Limits.RunsPerDay }, 0, 1_000_000),
		usdKey("http.limits.usd_per_day", "US dollars that the runs of one token may have cost in 24 hours when it starts another; 0: any amount", func(s *Settings) *float64 { return &s.HTTP.Limits.USDPerDay }, 1_000_000),
		strKey("http.oauth.issuer", "issuer of the tokens that are accepted", func(s *Settings) *string { return &s.HTTP.OAuth.Issuer }, checkURL),
		strKey("http.oauth.audience", "audience that a token must name", func(s *Settings) *string { return &s.HTTP.OAuth.Audience }, checkWord),
		strKey("http.oauth.jwks_url", "where the issuer's keys are; found through the issuer when empty",
			func(s *Settings) *string { return &s.HTTP.OAuth.JWKSURL }, checkURL),
		strKey("http.oauth.resource", "this server's own URL, as tokens name it; empty: http.public_url", func(s *Settings) *string { return &s.HTTP.OAuth.Resource }, checkURL),
		listKey("http.oauth.scopes", "scopes that a client is told to ask for at first", func(s *Settings) *[]string { return &s.HTTP.OAuth.Scopes }, checkScope),
		listKey("http.oauth.subjects", "subjects whose tokens are accepted; empty: everybody to whom the issuer gives a scope of this server",
			func(s *Settings) *[]string { return &s.HTTP.OAuth.Subjects }, checkWord),
	}
}

func intKey(name, doc string, field func(*Settings) *int, lo, hi int) key {
	return key{name, doc,
		func(l *loader, n ast.Node) {
			if v, ok := l.integer(name, n, lo, hi); ok {
				*field(&l.out) = v
			}
		},
		func(s Settings) any { return *field(&s) }, nil}
}

// check turns a text into the value to keep, or says what is wrong with it and
// what to do.
type check func(e Env, text string) (value, problem, remedy string)

func strKey(name, doc string, field func(*Settings) *string, c check) key {
	return key{name, doc,
		func(l *loader, n ast.Node) {
			text, ok := l.str(name, n)
			if !ok {
				return
			}
			value, problem, remedy := c(l.env, text)
			if problem != "" {
				l.add(n, name, problem, remedy)
				return
			}
			*field(&l.out) = value
		},
		func(s Settings) any { return *field(&s) }, nil}
}

func enumKey(name, doc string, field func(*Settings) *string, words ...string) key {
	k := strKey(name, doc, field, func(_ Env, text string) (string, string, string) {
		if slices.Contains(words, text) {
			return text, "", ""
		}
		return "", fmt.Sprintf("%q is not one of its values", shown(text)), "write one of " + strings.Join(words, ", ")
	})
	k.words = words
	return k
}

func listKey(name, doc string, field func(*Settings) *[]string, c check) key {
	return key{name, doc,
		func(l *loader, n ast.Node) {
			items, nodes, ok := l.list(name, n)
			if !ok {
				return
			}
			var out []string
			for i, item := range items {
				value, problem, remedy := c(l.env, item)
				if problem != "" {
					l.add(nodes[i], fmt.Sprintf("%s[%d]", name, i), problem, remedy)
					continue
				}
				out = append(out, value)
			}
			*field(&l.out) = out
		},
		func(s Settings) any { return *field(&s) }, nil}
}

const pathRemedy = "write an absolute path, or one that starts with ~/"

func checkPath(e Env, text string) (string, string, string) {
	path, problem, remedy := checkAnyPath(e, text)
	if problem == "" && (strings.HasSuffix(text, "/") || e.GOOS == "windows" && strings.HasSuffix(text, `\`)) {
		return "", fmt.Sprintf("%q names a directory", shown(text)), "name a file in it"
	}
	return path, problem, remedy
}

// checkDir refuses what would make a whole disk or home directory the memory.
func checkDir(e Env, text string) (string, string, string) {
	path, problem, remedy := checkAnyPath(e, text)
	if problem != "" {
		return "", problem, remedy
	}
	if path == "/" || len(path) <= 3 && len(path) >= 2 && path[1] == ':' {
		return "", fmt.Sprintf("%q is the root of the file system", shown(text)), "name a directory of its own for the memory"
	}
	if home, err := e.Home(); err == nil && path == home {
		return "", "is the home directory itself", "name a directory of its own for the memory"
	}
	return path, "", ""
}

func checkAnyPath(e Env, text string) (string, string, string) {
	path, err := e.Expand(text)
	switch {
	case text == "":
		return "", "is empty", pathRemedy + ", or remove the line to have the default"
	case err != nil:
		return "", fmt.Sprintf("%q %v", shown(text), err), pathRemedy
	}
	return path, "", ""
}

// checkProgram allows a bare name or an absolute path. A relative path would
// mean another program in every directory.
func checkProgram(e Env, text string) (string, string, string) {
	if text == "" {
		return "", "is empty", "write a program's name or its absolute path, or remove the line to have the default"
	}
	if !strings.ContainsAny(text, `/\`) && !strings.HasPrefix(text, "~") {
		return checkWord(e, text)
	}
	path, err := e.Expand(text)
	if err != nil {
		return "", fmt.Sprintf("%q %v", shown(text), err), "write a bare program name to look up in PATH, or an absolute path"
	}
	return path, "", ""
}

// checkWord allows any text without control characters or space around it.
func checkWord(_ Env, text string) (string, string, string) {
	switch {
	case text == "":
		return "", "is empty", "give it a value, or remove the line to have the default"
	case strings.TrimSpace(text) != text:
		return "", fmt.Sprintf("%q has space around it", shown(text)), "remove the space"
	case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "", "holds a control character", "write it on one line"
	}
	return text, "", ""
}

func checkAddr(_ Env, text string) (string, string, string) {
	const remedy = "write host:port, such as 127.0.0.1:8765 or [::1]:8765"
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " \t/") {
		return "", fmt.Sprintf("%q is not an address", shown(text)), remedy
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return "", fmt.Sprintf("%q is not a port", shown(port)), remedy
	}
	return text, "", ""
}

// checkScope allows what RFC 6749 allows in a scope.
func checkScope(e Env, text string) (string, string, string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= 0x20 || r > 0x7e || r == '"' || r == '\\' }) {
		return "", fmt.Sprintf("%q is not a scope", shown(text)), "write one word of printable ASCII, such as reprise:read"
	}
	return checkWord(e, text)
}

func checkOrigin(_ Env, text string) (string, string, string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.Contains(u.Host, "*") {
		return "", fmt.Sprintf("%q is not a web origin", shown(text)), "write scheme://host or scheme://host:port, without a path or a wildcard"
	}
	return text, "", ""
}

// checkURL wants https, or http on the loopback: tokens and keys travel there.
func checkURL(_ Env, text string) (string, string, string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return "", fmt.Sprintf("%q is not a web address", shown(text)), "write https://host/path"
	}
	if u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return "", fmt.Sprintf("%q is not encrypted", shown(text)), "use https; http is for the loopback only"
		}
	}
	return text, "", ""
}
