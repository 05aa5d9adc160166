package guard

import (
	"path/filepath"
	"strings"
)

// plainName is a command's name if it is one of the system's own programs:
// ./cat is not cat.
func plainName(s string) string {
	switch dir, base := filepath.Split(s); dir {
	case "", "/bin/", "/usr/bin/":
		return base
	}
	return ""
}

// isShallow reports whether a command does nothing to what is below a directory that
// it is given.
func isShallow(prog string) bool {
	switch prog {
	case "cd", "pushd", "ls", "stat", "file", "test", "[", "echo", "printf", "pwd", "realpath", "readlink", "basename", "dirname", "df", "mkdir", "cat",
		"head", "tail", "wc", "grep", "touch":
		return true
	}
	return false
}

// isReader reports whether a command never writes to a file that it is given, except
// by an option.
func isReader(prog string) bool {
	switch prog {
	case "cd", "pushd", "ls", "stat", "file", "test", "[", "echo", "pwd", "realpath", "readlink", "basename", "dirname", "df", "du", "true", "false",
		"cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "diff", "cmp", "nl", "tac", "cut", "od", "jq", "sha256sum", "md5sum", "find", "rg", "sort",
		"sed":
		return true
	}
	return false
}

// reads reports whether a command only reads. Options that make a reader
// write are few, but each list below is of what is allowed or of a whole
// family, never of single spellings.
func reads(prog string, args []string) bool {
	if !isReader(prog) {
		return false
	}
	switch prog {
	case "find":
		for _, a := range args {
			if strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") || strings.HasPrefix(a, "-delete") || strings.HasPrefix(a, "-f") && a != "-follow" && a != "-false" {
				return false
			}
		}
	case "sort":
		for _, a := range args {
			if strings.HasPrefix(a, "-") && strings.ContainsAny(a, "oTS") || strings.HasPrefix(a, "--") {
				return false
			}
		}
	case "rg":
		for _, a := range args {
			if strings.HasPrefix(a, "--pre") || strings.HasPrefix(a, "--hostname") {
				return false
			}
		}
	case "sed":
		// Printing lines by number is what sed is used for on files that
		// must not change.
		return len(args) >= 2 && args[0] == "-n" && strings.Trim(args[1], "0123456789,$") == "p" && !strings.HasPrefix(strings.Join(args[2:], " "), "-")
	}
	return true
}

// recursive reports whether a command goes down into the directories that it
// is given, or into the current one.
func recursive(prog string, args []string) bool {
	switch prog {
	case "rg", "ag", "ack", "fd", "fdfind", "find", "tree", "du":
		return true
	case "ls", "grep", "egrep", "fgrep", "diff":
		for _, a := range args {
			if strings.HasPrefix(a, "--rec") || strings.HasPrefix(a, "--deref") || strings.HasPrefix(a, "--dir") {
				return true
			}
			if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "Rr") && (prog != "ls" || strings.Contains(a, "R")) {
				return true
			}
		}
	}
	return false
}

// needsPattern is how many of a command's arguments come before its files.
func needsPattern(prog string) int {
	switch prog {
	case "rg", "ag", "ack", "grep", "egrep", "fgrep", "fd", "fdfind":
		return 1
	}
	return 0
}

// operands are the arguments that are not options, roughly.
func operands(args []string) []string {
	var out []string
	for _, a := range args {
		if a != "" && a[0] != '-' {
			out = append(out, a)
		}
	}
	return out
}
