package guard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hunter makes very many questions, put together of everything that means
// something to the guard, for script/mutate to look for those that a mutant answers
// otherwise. What is said of them is not known beforehand.
type hunter struct {
	t    testing.TB
	r    *rand.Rand
	seen map[string]bool
	list []question
	keep int // one of so many is taken
}

func (c *hunter) add(about, text string) {
	if len(text) > 1000 {
		return // it could stand in no list
	}
	if c.keep > 1 && about != "sed" && about != "awk" && about != "jq" && c.r.IntN(c.keep) > 0 {
		return
	}
	if key := about + " " + text; !c.seen[key] {
		c.seen[key] = true
		c.list = append(c.list, question{about, text})
	}
}

// mutationCandidates are the candidates as cases, from a file where one is named.
//
//lint:ignore U1000 called by the test that script/mutate lays over this package
func mutationCandidates(t *testing.T, from string) []mutationCase {
	p := newAsked(t)
	c := &hunter{t: t, r: rand.New(rand.NewPCG(20261128, 1)), seen: map[string]bool{}}
	if from != "" {
		c.list = readQuestions(t, from)
	} else {
		c.generate()
	}
	out := make([]mutationCase, len(c.list))
	for i, q := range c.list {
		out[i] = mutationCase{q.line(), func() string { return q.answer(p) }}
	}
	return out
}

func (c *hunter) generate() {
	c.literals()
	c.workspaces()
	c.repositories()
	c.keep = 3 // of what follows there is enough
	c.words()
	c.statements()
	c.programs()
	c.specials()
	c.lines()
	c.tools()
	c.filters()
	c.keep = 8
	c.memory()
}

func (c *hunter) of(list []string) string { return list[c.r.IntN(len(list))] }

// texts are the lines of a text, or its words where it has one line only.
func split(s string) []string {
	if s = strings.TrimSpace(s); strings.Contains(s, "\n") {
		return strings.Split(s, "\n")
	}
	out := strings.Fields(strings.ReplaceAll(s, `\ `, "␣")) // a blank with a backslash stands in a word
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "␣", " ")
	}
	return out
}

// sourceLiterals are the texts that stand in the analyser itself.
func sourceLiterals(t testing.TB) (all []string, of map[string][]string) {
	t.Helper()
	of = map[string][]string{}
	for _, pattern := range []string{"*.go", "filter/*.go", "names/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if s, err := strconv.Unquote(l.Value); err == nil && s != "" && len(s) < 40 && strings.Count(s, " ") < 2 && !strings.Contains(s, "\x00") {
						all = append(all, s)
						of[filepath.Base(f)] = append(of[filepath.Base(f)], s)
					}
				}
				return true
			})
		}
	}
	slices.Sort(all)
	return slices.Compact(all), of
}

// literals puts each text of the analyser to wherever a word of its kind may stand.
func (c *hunter) literals() {
	_, of := sourceLiterals(c.t)
	for file, list := range of {
		slices.Sort(list)
		list = slices.Compact(list)
		for _, s := range list {
			switch file {
			case "named.go", "names.go", "query.go", "filter.go":
				continue
			case "tools.go":
				c.toolLiteral(s)
			case "closed.go", "closedreads.go", "guard.go":
				c.memoryLiteral(s)
			default:
				c.literal(s)
			}
		}
	}
	for _, s := range of["names.go"] {
		for _, form := range []string{"%", "%X", "X%", "X_%"} {
			c.add("variable", strings.ReplaceAll(form, "%", s))
			c.add("variable", strings.ReplaceAll(form, "%", strings.ToLower(s)))
		}
		for _, form := range []string{"/w/%", "/w/%/x", "/w/%/config", "/w/%/settings.json", "%", "/%", "%/x", "/w/x%", "/w/%x", "/w/%/%", "/w/x.%", "/w/.gemini/%", "/w/.cursor/%", "/w/.claude/%", "/w/.git/%", "/w/.ssh/%", "/w/.docker/%", "/proc/%", "/w/.kube/%", "/w/.codex/%", "/w/.config/gh/%", "/w/.copilot/%", "/w/.env%", "/w/id_rsa%"} {
			c.add("path", strings.ReplaceAll(form, "%", s))
		}
	}
	for _, f := range []string{"query.go", "filter.go"} {
		for _, s := range of[f] {
			for _, form := range []string{"%", ". | %", "%(1)", `"\(%)"`, "BEGIN{%}", "BEGIN{x=%/2}", "{print %}", "%;e", "s/a/b/%"} {
				c.add("jq", strings.ReplaceAll(form, "%", s))
				c.add("awk", strings.ReplaceAll(form, "%", s))
				c.add("sed", strings.ReplaceAll(form, "%", s))
			}
		}
	}
}

func (c *hunter) literal(s string) {
	for _, head := range split("git cat rm set shopt read trap export unset declare find fd xargs bash env sudo kill pkill tar sed jq less exec command printf cd hash enable ulimit wait chmod dd unzip wget npm python3 rg ls curl node grep alias busybox watch vim ln printenv test flock getopts") {
		c.add("command", head+" "+s)
		c.add("command", head+" "+s+" x")
		if c.r.IntN(2) == 0 {
			c.add("command", head+" x "+s)
		}
	}
	for _, form := range []string{"%", "% x", "% f", "% --version", "% -v", "%=1 ls", "%=1; echo $((%))", "export %=1", "unset %", "declare % x", "export %", "for % in 1; do ls; done", "(( % = 1 ))", "echo $%", "echo ${%}", "cat $%", "cat %", "touch %", "read % < f", "printf -v % x", "command % x", "env %=1 ls", "env -u % ls", "cat %/x", "touch %/x", "rm -r %", "cat sub/%", "touch sub/%", "cat ~/%", "touch ~/%/x", "git % x", "git -c %=x log", "git -c %=false log", "git config %", "git config % x", "git % --patch", "git % .env", "git log %", "env -i %", "sudo %", "kill -l %", "pkill %", "pgrep % | xargs kill", "set -o %", "x | %", "ls | % -", "curl http://example.org | %", "curl http://example.org | % -", "% -c x", "ls > %", "cat < %", "cat f | % | sh", "cat % | xargs -I{} rm {}", "$(%)", "cat $(%)", "x=$(% f); cat $x", "cat $(% x f)", "for i in $(% -c x f); do cat $i; done", "kill $(% f)", "% --name-only | xargs cat", "x=$(git % --show-toplevel); cat $x"} {
		c.add("command", strings.ReplaceAll(form, "%", s))
	}
	for _, form := range []string{"%", "% x"} {
		for _, w := range split("free env homeless loose ruled") {
			c.add(w, strings.ReplaceAll(form, "%", s))
		}
	}
}

func (c *hunter) memoryLiteral(s string) {
	for _, w := range split("closed readable") {
		for _, form := range []string{"%", "% MEM", "% MEM/core.md", "% -r MEM", "% -R x ..", "% x MEM/core.md", "% ..", "cd .. && %", "cd .. && % x", "cd .. && % proj", "cd .. && % x proj", "cd .. && % x y", "cd MEM && %", "cd ..; % -r", "echo MEM | %", "ls ~ | % rm"} {
			c.add(w, strings.ReplaceAll(form, "%", s))
		}
		for _, prog := range split("find sort rg sed ls grep diff cat cp") {
			for _, form := range []string{" % MEM", " MEM %", " % ~", " x MEM % x"} {
				c.add(w, prog+strings.ReplaceAll(form, "%", s))
			}
		}
	}
	for _, in := range []string{`{"%":"MEM/core.md"}`, `{"%":"../.agent-memory/x"}`, `{"%":"."}`} {
		for _, w := range split("closed-tool readable-tool") {
			for _, tool := range split("Read NotebookRead LS Glob Grep Write NotebookEdit Other") {
				c.add(w, tool+"\t"+strings.ReplaceAll(in, "%", s))
			}
			for _, name := range split("file_path path command pattern notebook_path") {
				c.add(w, s+"\t"+strings.ReplaceAll(in, "%", name))
			}
		}
	}
}

func (c *hunter) toolLiteral(s string) {
	for _, kind := range split("shell read write edit search fetch mcp other") {
		for _, value := range []string{"touch x", "/etc/x", ".env", "http://x.example/", "*** Add File: /opt/x"} {
			c.add("tool", kind+"\tX\t"+s+"\t"+value)
			c.add("tool", kind+"\t"+s+"\tcommand\t"+value)
			c.add("tool", kind+"\t"+s+"\tinput\t"+value)
			c.add("tool", kind+"\tX\ta."+s+"[0]\t"+value)
			c.add("unattended-tool", kind+"\t"+s+"\tpath\t"+value)
			c.add("unattended-tool", kind+"\t"+s+"x\tpath\t"+value)
		}
		for _, more := range []string{"", " f", " -f", " /etc/x", " /s"} {
			c.add("tool", kind+"\tPowerShell\tcommand\t"+s+more)
		}
	}
}

// wordForms are ways to write a word.
func wordForms() []string {
	return append(split(`f sub .. . ../x ~ ~/x ~root/x ~+ ~+/x ~- ~2 $x "$x" ${x} ${x:-f} ${x-/etc/x} ${x:=f} ${x=f} ${x:?} ${x?m} ${x:+f} ${x%.go} ${x##*/} "${x%%y}" ${x/a/b} ${x:1} ${x:0:1} ${x^} ${x,,} ${x@Q} ${x@P} ${x@$y} ${#x} ${!x} ${!x*} ${!x@} ${x[@]} "${x[@]}" ${x[*]} "${x[*]}" ${x[0]} ${x[i]} ${#x[@]} ${!x[@]} "${x[@]:1}" $1 "$1" $2 $9 ${10} $@ "$@" $* "$*" $# $? $$ $! $PPID $UID $RANDOM $BASHPID $HOME "$HOME" $HOME/x ${HOME}/x "$HOME/x" $PWD $PWD/f "$PWD/f" "$PWD" $TMPDIR/x $OLDPWD $USER $TOKEN "$TOKEN" ${TOKEN} ${TOKEN:-x} $FOO $n 'f' "f" f'' $'f' $'\x66' $'\u0066' $'\U00000066' $'\146' $'\c' $'\c@' $'\cA' $'\0' $'\x' $'\e' $'\a\b\f\n\r\t\v' $'\q' $'\\' $'a\' $'\xzz' $'\u' $"f" \f f\ x \\ \~ * *.go s*/x ./* .* .[a-z]* ?.go [ab] [!a]* "*" \* **/x ../* ~/* /etc/* out/* .git/* .claude/* {f,sub} {f,/etc/x} {1..3} {a..c}/x f{,.bak} {f} {f,$x} !(f) @(a|b) +(x)/y sub/!(x) $(ls) "$(ls)" $(echo\ f) $(cat f) $(pwd) "$(pwd)/f" $(pwd)/../x $(find\ .) $(grep\ -c\ x\ f) $(wc\ -l) $((1)) $((x)) $((x+1)) $((a[0])) <(ls) >(ls) <(curl\ example.org) $(curl\ example.org) "$(curl example.org)" $(git\ rev-parse\ --show-toplevel) $(git\ ls-files) "$(echo f)" $(true) "" '' - -- -x -n --x=1 --x=$x -$x --$x =x x= a=b +x +1 % %1 1 0 -1 007 0x1f 99999 # x#y !x ! / // /etc/passwd /dev/null /dev/tcp/x/1 /dev/fd/3 /dev/stdin /dev/sda /tmp/x .env sub/.env .git .git/config .claude .claude/settings.json ~/.bashrc ~/.ssh/id_rsa /proc/self/environ http://localhost/ http://example.org/x https://a.example.net file:///etc/x ext::x a@b:c HEAD HEAD:f main:.env :/x HEAD~1..HEAD origin/main refs/heads/main inner inner/.. inner/../f sub/up/f sub/up loop tosettings tosecret nowhere deep/far deep/far/x deep/home/x evil.sh ./evil.sh sub/../f f/x none none/x`), "f g", `"two words"`, "'a b'", `$(echo 'f sub')`, `$(printf '%s\n' f sub)`, `$(printf x)`, `$(echo -n f)`, `$(echo -e 'a\tb')`, `$(echo *.go)`, `$(ls; pwd)`, `$(cat < f)`, "`pwd`", "a\\\nb", "\"a\\\nb\"", `"\$x"`, `"a\"b"`, `"$x$y"`, `$x$n`, `$x/$y`, `$n/$x`, `/$x`, `/etc/$x`, `../$x`, `sub/$x`, `./$x`, `.git/$x`, `/dev/$x`, `$x/f`, `"$x"/`, `"$x"/*`, `$x*`, `"${x:?}"/*`, `"${x:?}/f"`, `${x:-$(pwd)}`, `${x:-$y}`, `${x:-$(curl example.org)}`, `"$(cat f)"/*`)
}

// words puts words of each form where it matters what they are.
func (c *hunter) words() {
	forms := wordForms()
	places := split(`
W
W x
cat W
rm W
rm -rf W
touch W
echo W
cd W && ls
cd W; cat f
cd W; touch f
ls > W
cat < W
cat <<< W
ls >& W
ls <& W
sed W f
sed -n Wp f
awk W f
x=W; cat $x
x=W; cat "$x"
x=W; rm -r $x/y
x=W; $x
x=W; echo $((x))
x=W; eval $x
x=W; eval "ls $x"
x=W; bash -c "$x"
x=W; [[ $x -eq 1 ]]
x=W; echo ${!x}
x=W; for i in $x; do cat $i; done
x=W; cat sub/$x
x=W; x+=W; cat $x
x=(W f); cat "${x[@]}"
x=(W); rm ${x[0]}
x=(W W); for i in "${x[@]}"; do cat "$i"; done
declare -i x=W
declare x=W; cat $x
export x=W
declare -n x=W
export W
readonly W
unset W
for i in W; do cat "$i"; done
for i in W; do touch $i; done
for i in W W f; do $i; done
for i in W f; do cd $i; done; cat f
for i in 1 2 3 4 5 6 7 8 9 10 11 12 W x; do cat $i; done
while read i; do cat "$i"; done <<< W
echo W | xargs cat
echo W | xargs -I{} cat {}/x
echo W | xargs rm
echo W | sh
echo W | while read x; do rm "$x"; done
printf W
printf '%s\n' W | xargs cat
printf '%s' W | sh
printf W | bash
bash -c W
bash W
bash -x W
eval W
exec W
command W
env W ls
env W
source W
trap W EXIT
case W in x) ls;; esac
[[ -f W ]]
[[ -v W ]]
[[ W -lt 3 ]]
[[ W == x* ]]
[ W = x ]
[ -n W ]
test W
test -v W
test W -eq 1
let W
(( W ))
(( x = W ))
echo $(( W ))
echo ${x:W}
echo ${x[W]}
echo ${x/W/y}
echo ${x:-W}
echo ${x:=W}
x[W]=1
printf -v W x
read W
read -r W y < f
mapfile W < f
getopts ab W
f() { cat "$1"; }; f W
f() { rm "$@"; }; f W x
f() { cat $*; }; f W
f() { shift; cat "$1"; }; f W
set -- W; cat "$1"
set -- W f; cat "$2"
set -- W; rm $@
set W
find W -name x
find . -name W
find W -delete
find W -exec rm {} +
find . -exec W {} \;
find . -exec cat W {} \;
fd W
fd x -x W
xargs W
xargs -a W cat
kill W
kill -9 W
pkill W
killall W
wait W
git W
git log W
git show W
git diff W
git -C W log
git -c W log
git add W
git checkout W
git push -f origin W
git push origin W
git push origin :W
git push origin +W
git push W
git config W
git config W x
git diff --no-index W f
git grep x W
git rm W
timeout W ls
timeout 5 W
nice -n W ls
flock W ls
sudo W
watch W
curl W
curl -d W http://example.org
curl -d @W http://example.org
curl -o W http://localhost
curl -H W http://localhost
wget -O W http://localhost
scp W x:
chmod W f
chmod 644 W
chmod -R 755 W
chown -R me W
ln -s W l; cat l
ln -s W l; touch l/x
ln -s f W; cat W
ln -sf W
dd of=W
dd if=W
tar cf W f
tar xf W
tar -xf a.tar -C W
tar cf - W
tar -W a.tar
unzip W
printenv W
jq W f
jq . W
less W
vim W
sort -o W f
sort W
tee W
cp f W
cp W x
mv W x
head -W f
ls W
mkdir -p W
grep W f
grep -f W x
grep x W
rg W
python3 W
python3 -c W
npm W
npm --prefix W test
make W
pushd W; cat f
pushd W; popd; cat f
hash W
ulimit W
shopt W
enable W
alias W
umask W
wait -p W
busybox W
cat f > W; cat W
ls 2>W
ls &> W
ls W>f
{ cat f; } < W
cat <<E⏎W⏎E
cat <<E | sh⏎W⏎E
bash <<E⏎W⏎E
cat <<'E' | sh⏎W⏎E
cat <<-E | sh⏎	W⏎	E
HOME=W ls
PATH=W ls
LC_ALL=W ls
FOO=W ls
IFS=W read x < f
FOO=W
W=1 ls
W=1
W+=x
f() { W; }; f
(W)
if W; then ls; fi
coproc W
time W
! W
W | cat
W | sh
ls | W
W &
W && cat f
W || cat f`)
	for _, place := range places {
		for _, form := range forms {
			text := strings.ReplaceAll(strings.ReplaceAll(place, "W", form), "⏎", "\n")
			c.add("command", text)
			switch c.r.IntN(14) {
			case 0:
				c.add("free", text)
			case 1:
				c.add("env", text)
			case 2:
				c.add("homeless", text)
			case 3:
				c.add("nowhere", text)
			case 4:
				c.add("loose", text)
			case 5:
				c.add("closed", text)
			case 6:
				c.add("readable", text)
			case 7:
				c.add("placeless", text)
			case 8:
				c.add("explained", text)
			}
		}
	}
}
