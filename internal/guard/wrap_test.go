package guard

import "strings"

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// wrapping is a way to have a command run inside another one. Whatever is not
// allowed by itself must not be allowed inside it.
type wrapping struct {
	name string
	wrap func(c string) string
}

// around is a wrapping that puts the command's text between two others.
func around(name, before, after string) wrapping {
	return wrapping{name, func(c string) string { return before + c + after }}
}

// quoted is a wrapping that gives the command as one quoted word.
func quoted(name, before, after string) wrapping {
	return wrapping{name, func(c string) string { return before + quote(c) + after }}
}

// wrappings are many more than the shell's own: each is a class of programs or of
// grammar by which a command is hidden from who looks at the first word only.
func wrappings() []wrapping {
	return []wrapping{
		// Lists.
		around("list", "ls; ", ""), around("and", "ls && ", ""), around("or", "false || ", ""), around("background", "ls & ", ""), around("newline", "ls\n", ""),
		around("in the background", "{\n", "\n} & wait"), around("comment before", "# ls\n", ""), around("first of a list", "", "\nls"), around("behind many", strings.Repeat("true; ", 60), ""),
		// Blocks.
		around("subshell", "(\n", "\n)"), around("block", "{\n", "\n}"), around("if", "if true; then\n", "\nfi"), around("condition", "if {\n", "\n}; then ls; fi"), around("else", "if false; then ls; else\n", "\nfi"), around("elif", "if false; then ls; elif true; then\n", "\nfi"),
		around("while", "while true; do\n", "\nbreak; done"), around("while condition", "while {\n", "\n}; do break; done"), around("until", "until false; do\n", "\nbreak; done"), around("for", "for i in 1; do\n", "\ndone"), around("for many", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do\n", "\ndone"), around("for with numbers", "for ((i=0; i<1; i++)); do\n", "\ndone"),
		around("case", "case x in x)\n", "\n;; esac"), around("select", "select i in 1; do\n", "\nbreak; done < f"), around("function", "f() {\n", "\n}; f"), around("function keyword", "function f {\n", "\n}\nf a b"), around("function not called", "ls() {\n", "\n}"), around("subshell function", "f() (\n", "\n); f"),
		around("negated", "! {\n", "\n}"), around("timed", "time {\n", "\n}"), around("beside", "coproc {\n", "\n}"),
		// Pipes and redirections.
		around("pipe from", "{\n", "\n} | cat"), around("pipe to", "ls | {\n", "\n}"), around("both to a pipe", "{\n", "\n} |& head -1"), around("redirected", "{\n", "\n} > /dev/null"), around("read from", "{\n", "\n} < f"), around("both redirected", "{\n", "\n} &> /dev/null"),
		// Substitutions.
		around("substitution", "echo \"$(\n", "\n)\""), around("bare substitution", "echo $(\n", "\n)"), around("process in", "cat <(\n", "\n)"), around("process out", "ls > >(\n", "\n)"), around("assignment", "x=$(\n", "\n)"), around("before a command", "LC_ALL=$(\n", "\n) ls"), around("exported", "export LANG=$(\n", "\n)"), around("array", "a=(x $(\n", "\n))"), around("subscript", "a[$(\n", "\n)]=1"),
		around("arithmetic", "echo $(( $(\n", "\n) ))"), around("default", "echo \"${x:-$(\n", "\n)}\""), around("alternative", "given=1; echo ${given:+$(\n", "\n)}"), around("pattern", "echo ${x#$(\n", "\n)}"), around("test", "[[ -n $(\n", "\n) ]]"), around("test command", "[ -n \"$(\n", "\n)\" ]"), around("loop over", "for i in $(\n", "\n); do echo; done"), around("matched", "case $(\n", "\n) in *) ls ;; esac"), around("redirect to", "ls 2> \"$(\n", "\n)\""),
		around("in a here-document", "cat <<END_OF_TEXT\n$(\n", "\n)\nEND_OF_TEXT"), around("in a here-string", "cat <<< \"$(\n", "\n)\""),
		{"backquotes", func(c string) string {
			return "echo `" + strings.NewReplacer("\\", `\\`, "`", "\\`", "$", `\$`).Replace(c) + "\n`"
		}},
		// Shells.
		quoted("bash -c", "bash -c ", ""), quoted("sh -ec", "sh -ec ", ""), quoted("bash -eo pipefail -c", "bash -eo pipefail -c ", ""), quoted("bash --norc -c", "bash --norc -c ", " a b"), quoted("eval", "eval ", ""), {"eval eval", func(c string) string { return "eval eval " + quote(quote(c)) }}, quoted("command eval", "command eval ", ""), quoted("builtin eval", "builtin eval ", ""), quoted("exec", "exec sh -c ", ""), quoted("trap", "trap ", " EXIT"), quoted("variable", "wrapped=", "; eval \"$wrapped\""), quoted("variable to a shell", "wrapped=", "; bash -c \"$wrapped\""),
		quoted("here-string", "bash <<< ", ""), around("here-document", "bash <<'END_OF_IT'\n", "\nEND_OF_IT"), around("piped here-document", "cat <<'END_OF_IT' | sh\n", "\nEND_OF_IT"), quoted("piped", "printf '%s\\n' ", " | bash"), quoted("echoed", "echo ", " | sh -s"), quoted("sourced process", "source <(echo ", ")"), quoted("shell of a process", "bash <(echo ", ")"),
		// Programs that run programs.
		quoted("env", "env LC_ALL=C bash -c ", ""), quoted("timeout", "timeout 5 bash -c ", ""), quoted("nohup nice", "nohup nice -n 5 sh -c ", ""), quoted("stdbuf", "stdbuf -oL sh -c ", ""), quoted("setsid", "setsid sh -c ", ""), quoted("time", "command time -p sh -c ", ""), quoted("sudo", "sudo sh -c ", ""), quoted("su", "su -c ", ""), quoted("busybox", "busybox sh -c ", ""), quoted("script", "script -qc ", " /dev/null"), quoted("flock", "flock . -c ", ""), quoted("watch", "watch ", ""), quoted("ssh", "ssh host ", ""),
		quoted("xargs", "echo x | xargs -I{} sh -c ", ""), quoted("xargs -0", "printf 'x\\0' | xargs -0 -n1 bash -c ", " _"), quoted("find", "find . -exec sh -c ", " \\;"), quoted("find +", "find . -name f -exec bash -c ", " _ {} +"), quoted("find -execdir", "find . -execdir sh -c ", " \\;"), quoted("fd", "fd -x sh -c ", ""), quoted("git alias", "git -c alias.x=!", " x"), quoted("git submodule", "git submodule foreach ", ""), quoted("git bisect", "git bisect run sh -c ", ""), quoted("git rebase", "git rebase -x ", " main"),
		quoted("awk", "awk 'BEGIN{system(ARGV[1])}' ", ""), quoted("make", "printf 'x:\\n\\t%s\\n' ", " | make -f -"), quoted("python", "python3 -c 'import os,sys; os.system(sys.argv[1])' ", ""), quoted("rg --pre", "rg --pre ", " x"), quoted("tar", "tar tf a.tar --to-command=", ""), quoted("mapfile", "mapfile -c 1 -C ", " a < f"), quoted("prompt", "PS4=", " bash -xc ls"), quoted("pager", "PAGER=", " git log"),
	}
}
