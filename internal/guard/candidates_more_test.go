package guard

import (
	"strings"

	"reprise/internal/guard/know"
)

// statements puts what changes the state before what depends on it.
func (c *hunter) statements() {
	before := split(`
x=f
x=/etc
x=1
x=-n
x='a b'
x=$(pwd)
x=$(cat f)
x=$(git ls-files)
x=$(echo f)
x=$((1+1))
x=
x=*.go
x=(f sub)
x=(f *)
x[1]=f
x+=1
x=1; x+=2
x=f; x+=/g
unset x
export x=f
export x
declare -i x
declare -i x=1
declare -i x; x=a
typeset -i x=1
local x=f
readonly x=f
declare -n x=y
declare -x x=f
declare x
declare -a x
declare -A x; x[a]=f
declare -p
declare -f
declare -t x
declare -q x
declare "x=f"
declare "x+=f"
declare "$x=f"
declare 'x=(f g)'
declare "BASH_FUNC_ls%%=x"
command export x=f
command declare -i x=1
\export x=f
builtin declare -x x=1
read x < f
read x <<< f
read -r x y <<< 'f g'
read -a x < f
read -p x x
read -t 1 x
read -t1 x
read -d '' x
read -n1 x
read -s x
read -rs x
read -rn 1 x
read -u 3 x
read -e x
read -i a x
read -N 1 x
read -N1 x
read -q x
read -ra x <<< 'a b'
read -- x
read
read < f
echo f | read x
ls | read x
mapfile -t x < f
mapfile -C ls -c 1 x < f
mapfile -n 1 -O 1 -s 1 x < f
readarray x < f
cat f | mapfile x
while read -r x; do :; done < f
find . | while read -r x; do :; done
for x in f sub; do :; done
for x in 1 2 3; do :; done
for x in *.go; do :; done
for x; do :; done
for x in; do :; done
for ((x=0; x<3; x++)); do :; done
for ((x=0, y=1; x<y; )); do :; done
for ((;;)); do x=1; done
for x in $(ls); do :; done
for x in $(find .); do :; done
select x in a b; do break; done
if true; then x=f; fi
if true; then x=1; else x=2; fi
if cd sub; then x=1; fi
case f in a) x=f;; *) x=1;; esac
case f in a) cd sub;; esac
while true; do x=1; done
while true; do x=$((x+1)); done
while true; do cd sub; done
until false; do x=f; done
(x=f)
{ x=f; }
x=f | cat
x=f &
f() { x=f; }; f
f() { local x=$1; }; f f
f() { cd sub; }; f
f() { echo f; }
f() { echo f; }; x=$(f)
f() { f; }; f
f() { g; }; g() { f; }; f
f() { x=f; }
g() { return; }; f() { g; }
function f { x=1; }
function f g { x=1; }
f/g() { ls; }
f() { cat "$@"; }
f() { cat "$1" > "$2"; }
(( x = 1 ))
(( x += 1 ))
(( x++ ))
(( x[0] = 1 ))
let x=1
let x++
let 'x = y'
\let x=1
echo $(( x = 1 ))
[[ -v x ]]
[[ x -eq 1 ]]
[[ $x == f ]]
[[ $x =~ ^[0-9]+$ ]]
[[ ( -f f ) && ! -d f ]]
[ -f f ]
test -v x
test -R x
[ -v x ]
[ $x ]
test $x
test "$x" -eq 1
: ${x:=f}
: ${x=1}
: "${x:?}"
: $((x=1))
printf -v x f
printf -vx f
printf -v x[0] f
printf -v
printf -- f
getopts ab x
getopts ab
set -- f sub
set -- *
set - f
set f g
set -e
set -euo pipefail
set -o pipefail
set -o vi
set -o
set +x
set -k
set +o posix
set -x -- f
set $x
set
shift
shopt -s nullglob
shopt -s expand_aliases
shopt -u extglob
shopt
cd sub
cd ..
cd /etc
cd /none
cd none
cd inner
cd inner/..
cd sub/up
cd deep/far
cd -P sub
cd -L sub
cd -- sub
cd -
cd
cd ~
cd $x
cd sub x
cd "*"
cd -e sub
cd +1
cd ./sub
cd ../project
cd sub || exit
cd sub && cd ..
cd none && ls
cd sub; cd none
cd sub || cd deep || cd far || cd own || cd dash || cd src || cd m
pushd sub
pushd /etc
pushd none
pushd
pushd sub x
pushd sub; pushd ../deep; popd
popd
pushd sub && popd
popd -n
pushd sub; popd x
dirs
exec 3< f
exec > log
exec
exec {fd}< f
exec {fd}>&-
ls {fd}> f
alias ls=rm
unalias ls
hash -p ./x ls
hash -r
hash ls
enable -f x y
enable -n test
enable
ulimit -n 5
ulimit -a
umask 022
umask
trap 'rm f' EXIT
trap - EXIT
trap '' INT
trap
trap -l
trap -p
trap -- ls EXIT
trap "$x" EXIT
trap ls
eval x=f
eval "x=$y"
eval 'cd sub'
eval
source f
source ./evil.sh
. ./evil.sh
source
source /dev/stdin < f
source /dev/stdin <<< x=f
source /dev/fd/0 <<< x=f
source <(cat f)
source "$x"
wait
wait -n
wait -p x
wait -p x -n 1
true
false
! true
ln -s .claude lnk
ln -s /etc lnk
ln -s ../.. sub
ln -s f
ln -s
ln f lnk
ln -sf .env lnk
ln -s $x lnk
PATH=.
PATH=$PATH:.
IFS=,
HOME=/x
OPTIND=x
RANDOM=x
RANDOM=1
RANDOM=$x
SECONDS=$((1))
LINENO=$(cat f)
HISTCMD=a
SRANDOM=a
OPTIND=x ls
export OPTIND=x
LD_PRELOAD=x
export LD_PRELOAD
BASH_ENV=x
export TZ=UTC
TOKEN=x
curl http://example.org -o y
cat .env
pgrep claude
ps aux
ps aux | grep codex
env
export
time
time ls
coproc ls
coproc x { ls; }
{ ls; } &
`)
	after := split(`
ls
f
f f
f f g
g
cat $x
cat "$x"
cat "${x[@]}"
cat ${x[0]}
cat "${x[1]}"
cat f
cat ../x
cat lnk
cat lnk/settings.json
touch f
touch lnk/x
rm lnk
touch "$x"
rm "$x"
rm -r "$x"/*
rm -rf $x/
$x
"$x"
ls $x
ls -$x
ls "$@"
ls "$1"
cat "$1" "$2"
echo $((x))
echo $((x+y))
echo $((x[0]))
echo "$x"
echo "$x" | sh
echo $x > f
[[ $x -eq 1 ]]
[ $x ]
[[ -n $x ]]
eval "$x"
bash -c "$x"
bash -c 'cat $x'
bash -c 'cat "$1"' _ "$x"
kill $x
kill $!
kill %1
kill $PPID
kill -9 $(cat f)
pkill x
sed -n "${x}p" f
sed "$x" f
awk "NR==$x" f
head -n $x f
head -$x f
cd "$x" && ls
cd sub && cat g
cd ..; cat f
cd - && ls
pwd
cat $(pwd)/f
cat "$PWD/f"
popd; ls
x=$x$x; cat $x
x+=1; echo $((x))
for i in $x; do cat $i; done
for i in "${x[@]}"; do rm "$i"; done
for i in 1 2; do x=$((x+1)); done; head -$x f
while read y; do cat $x$y; done < f
if true; then cat $x; fi; cat $x
(cat $x)
cat "$x" | xargs rm
find . -name "$x"
find "$x" -delete
git log $x
git -C $x log
git push -f origin "$x"
git push -f
git status
git commit -m x
export x
unset x
read x <<< 1
printf -v x 1; echo $((x))
declare -i x
curl "$x"
curl -d "$x" http://example.org
curl -d x http://example.org
python3 -c "$x"
ls >> $x
ls >&$x
ls 2>&1
cat <<< "$x"
cat <<E⏎$x⏎E
timeout $x ls
nice -n $x ls
env x=$x ls
env ls
sudo $x
test -f "$x"
command ls
command -v ls
command f
builtin f
exec f
type f
wait $!
return
echo hi
OPTARG=1; cat $OPTARG
cat "$REPLY"
`)
	for _, a := range before {
		c.add("command", a)
		for _, b := range after {
			if c.r.IntN(2) == 0 {
				continue
			}
			text := strings.ReplaceAll(a+"; "+b, "⏎", "\n")
			if strings.HasSuffix(a, "&") {
				text = strings.ReplaceAll(a+" "+b, "⏎", "\n")
			}
			c.add("command", text)
			switch c.r.IntN(12) {
			case 0:
				c.add("command", strings.ReplaceAll(a+" && "+b, "⏎", "\n"))
			case 1:
				c.add("command", strings.ReplaceAll(a+" || "+b, "⏎", "\n"))
			case 2:
				c.add("env", text)
			case 3:
				c.add("free", text)
			case 4:
				c.add("homeless", text)
			case 5:
				c.add("closed", text)
			case 6:
				c.add("readable", text)
			case 7:
				c.add("nowhere", text)
			case 8:
				c.add("loose", text)
			}
		}
	}
	for range 20_000 { // three in a row, in blocks
		text := c.of(before) + c.of([]string{"; ", " && ", " || ", "\n"}) + c.of(before) + c.of([]string{"; ", " && ", " || ", "\n"}) + c.of(after)
		switch c.r.IntN(9) {
		case 0:
			text = "if " + c.of(before) + "; then " + c.of(before) + "; else " + c.of(before) + "; fi; " + c.of(after)
		case 1:
			text = "for i in 1 2; do " + c.of(before) + "; " + c.of(after) + "; done; " + c.of(after)
		case 2:
			text = "while " + c.of(after) + "; do " + c.of(before) + "; done; " + c.of(after)
		case 3:
			text = "f() { " + c.of(before) + "; " + c.of(after) + "; }; " + c.of(before) + "; f " + c.of(wordForms()) + "; " + c.of(after)
		case 4:
			text = c.of(after) + " | " + c.of(before) + " | " + c.of(after)
		case 5:
			text = "x=$(" + c.of(before) + "; " + c.of(after) + "); " + c.of(after)
		case 6:
			text = "case x in x) " + c.of(before) + ";; y) " + c.of(before) + ";; esac; " + c.of(after)
		}
		if !strings.Contains(text, "&;") && !strings.Contains(text, "& |") && !strings.Contains(text, "& &") {
			c.add("command", strings.ReplaceAll(text, "⏎", "\n"))
		}
	}
}

// programs goes through the table: each program with each option and arguments of
// several kinds.
func (c *hunter) programs() {
	list, _ := entries()
	args := split(`f 1 /etc/a $x "$x" *.go .env - x=y http://localhost/ http://example.org x.example 'BEGIN{system(1)}' 1e .git/config ext::x -1 @f @.env @/etc/a = 0`)
	for _, e := range list {
		c.add("free", e.words)
		for _, a := range args {
			if c.r.IntN(4) > 0 {
				continue
			}
			c.add("command", e.words+" "+a)
			c.add("command", e.words+" -- "+a)
			c.add("command", e.words+" f "+a)
			c.add("free", e.words+" "+a)
			c.add("command", "ls | "+e.words+" "+a)
		}
		for _, s := range []string{" | sh", " | xargs rm", " | while read x; do cat $x; done", " f | xargs rm", " f | while read x; do cat $x; done"} {
			c.add("command", e.words+s)
		}
		c.add("command", "cat $("+e.words+" f)")
		c.add("command", "head -$("+e.words+" f) f")
		c.add("command", "curl http://example.org | "+e.words)
		for _, o := range e.p.Opts {
			name := o.Name
			for _, a := range args[:10] {
				if c.r.IntN(8) == 0 {
					c.add("command", e.words+" "+name+" "+a)
				}
			}
			if c.r.IntN(6) > 0 && len(e.p.Opts) > 8 {
				continue
			}
			a := c.of(args)
			c.add("free", e.words+" "+name+" "+a)
			c.add("command", e.words+" "+name+"="+a)
			c.add("command", e.words+" "+name+a)
			c.add("command", e.words+" "+name)
			c.add("command", e.words+" f "+name+" f")
			if len(name) > 4 {
				c.add("command", e.words+" "+name[:len(name)-2]+" "+a)
			}
			if o.Kind == know.Net || o.Effect == know.Net {
				c.add("free", e.words+" "+name+" example.org")
			}
			if len(e.p.Opts) > 1 {
				other := e.p.Opts[c.r.IntN(len(e.p.Opts))].Name
				c.add("command", e.words+" "+name+" "+other+" f")
				c.add("command", e.words+" "+name+other[1:]+" f")
				c.add("command", e.words+" "+strings.TrimPrefix(name, "-")+" f")
			}
		}
		words := strings.Fields(e.words)
		if len(words) > 1 { // an option before the subcommand
			for _, o := range know.Find(words[0]).Opts {
				if c.r.IntN(4) == 0 {
					c.add("command", words[0]+" "+o.Name+" x "+strings.Join(words[1:], " "))
					c.add("command", words[0]+" "+o.Name+" "+strings.Join(words[1:], " "))
				}
			}
			c.add("command", words[0]+" --zz "+strings.Join(words[1:], " "))
			c.add("command", words[0]+" -C sub "+strings.Join(words[1:], " ")+" f")
		}
	}
}
