package guard

import (
	"strings"

	"reprise/internal/guard/filter"
)

// What one command lists, another one may take for its arguments: `find MEM | xargs rm`
// names the directory in a command that only reads, and changes what is in it. So the
// commands count that take names out of a list, and, behind one that tells names, any
// that is fed and not known to pass on or count what it reads.

// takesNames reports whether a command takes names out of a list, from what it reads
// or from a file. What an option is for is told by its name, whatever the program.
func takesNames(prog string, args []string) bool {
	switch prog {
	case "xargs", "parallel", "read", "mapfile", "readarray", "cpio", "pax", "afio":
		return true
	case "tar", "bsdtar", "gtar", "star":
		for i, a := range args {
			if cluster := strings.TrimPrefix(a, "-"); (i == 0 || cluster != a) && !strings.HasPrefix(cluster, "-") && strings.Contains(cluster, "T") {
				return true
			}
		}
	}
	for _, a := range args {
		if strings.HasPrefix(a, "@") { // 7z's @LIST
			return true
		}
		if name, option := strings.CutPrefix(a, "-"); option && listOption(strings.TrimPrefix(name, "-")) {
			return true
		}
	}
	return false
}

// listOption reports whether an option, without its dashes, names a list of files:
// --files-from, --files0-from, --pathspec-from-file, --stdin, zip's -@ and 7z's -i@LIST,
// long ones also where they are cut short.
func listOption(name string) bool {
	name, _, _ = strings.Cut(name, "=")
	for _, part := range [...]string{"from", "stdin", "filelist", "file-list", "@"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return len(name) > len("file") && (strings.HasPrefix("files-from", name) || strings.HasPrefix("files0-from", name) || strings.HasPrefix("pathspec-from-file", name))
}

// tellsNames reports whether a command that reads tells names of files, and not only
// what is in them.
func tellsNames(prog string) bool {
	switch prog {
	case "cat", "head", "tail", "nl", "tac", "cut", "od", "jq", "sed", "sort", "cmp":
		return false
	}
	return true
}

// passesOn reports whether a command does nothing with what it reads but count it,
// change it and write it out: the names in it are words to it.
func passesOn(prog string, args []string) bool {
	switch prog {
	case "tee", "tr", "uniq", "fold", "fmt", "column", "paste", "join", "comm", "expand", "unexpand", "rev", "shuf", "numfmt", "pr", "printf",
		"less", "more", "base64", "base32", "xxd", "hexdump", "strings", "iconv", "cksum", "sum", "sha1sum", "sha512sum", "b2sum":
		return true
	case "sed":
		program, ok := programIn(args, "nErsuz", "")
		what, _ := filter.Sed(program)
		return ok && what == ""
	case "awk", "gawk", "mawk", "nawk":
		program, ok := programIn(args, "", "Fv")
		what, _ := filter.Awk(program)
		return ok && what == ""
	}
	return isReader(prog)
}

// programIn is the program among the arguments of sed or awk: the first that is no
// option. It is not found behind an option that is none of these, of which the valued
// ones take an argument.
func programIn(args []string, flags, valued string) (program string, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case len(a) < 2 || a[0] != '-':
			return a, true
		case strings.IndexByte(valued, a[1]) >= 0:
			if len(a) == 2 {
				i++
			}
		case strings.Trim(a[1:], flags) != "":
			return "", false
		}
	}
	return "", false
}
