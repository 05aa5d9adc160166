package sign

import (
	"strings"
	"sync"
	"unicode"
)

// failureWords are words in which programs say that something failed, and what. Verbs by
// which somebody could be told to do what harms (run, ignore, push, delete, send, approve)
// are not among them. What is called how is not here either: such words are quoted where
// the command has them.
const failureWords = `
a an and any are as at be been but by did do does for from got had has have in into is it its no none not of off on once only or other out outside over own
so than that the there they this to too two under until up was were what when where which while who with within without yet already after all also another
before because between both both's can cannot can't could couldn't couldn doesn doesn't didn't isn't wasn't won't may might must needs needed should would want wants wanted
aborted absent access accessible account active actual address addresses allocate allocated allocation ambiguous api app application architecture argument arguments array assert
assertion assertionerror assigned assignable assignment assignments asleep attempt attribute attributes auth authentication authorization authorized available
bad bind binary blocked body borrow borrowed boolean bound bounds branch branches broken bucket buffer build builds bundle byte bytes
cache cached call called caller cancelled canceled case cast caused cert certificate change changed changes channel char character characters check checks checksum child circular class client
closed closing cluster code codec collection column columns command commands commit commits compare compatible compilation compile compiled compiler complete completed component config configuration configured
conflict conflicting conflicts connect connected connection connectivity connections constraint constructor container content contents context contract convert core corrupt corrupted count crash crashed created credentials cycle cyclic
daemon data database date dead deadline deadlock declaration declared decode default defined definition denied dependencies dependency deprecated depth dereference descriptor detected device diff
different directories directory disabled disk display division dns does document domain driver duplicate duplicated during
each element empty enabled encode encoding end endpoint engine entity entry enum environment equal equality error errors exceeded exception exceptions exist existed existing exists exit exited expect expectation expected expired export exported exports expression extension external extra
fail failed fails failing failure failures false fatal fault field fields file files filesystem first flag folder forbidden foreign fork format found frame free full function
gateway generic git global goroutine goroutines group
handle handler handshake hash header headers heap host hostname
id identical identifier identity illegal image implemented import imported imports incompatible incomplete incorrect indent indentation index initialized inode input instance int integer interface internal interrupted invalid io issue issues item items
job jobs json key keys killed kind
label language large last layer left length level library libraries license limit limits line lines link linker lint list listen listening local locale locked lock lockfile login long lookup loop
main malformed manifest mapping match matched matches matching max maximum member memory message metadata method migration min minimum mismatch mismatched missing mode modified module modules most moved multiple mutable
name named names namespace nested network never next nil node non nor notfound null number numbers
object objects obsolete occurred offset operand operation operations operator option optional options order ordinal origin original outdated output overflow owner
package packages page panic panicked parameter parameters parent parse parsed parser parsing part partial pass passed path paths pattern peer pending permission permissions permitted pipe platform plugin pointer policy port position possible postcondition precondition prefix premature present previous primary private problem problems process processes processing program project promise properties property protected protocol provider provided provides public
query queue quota quote
race range rate raw reachable read reader reading readonly reason received record recursion recursive redirect redefined ref reference referenced references refs refused regex region registered registry rejected relation release remaining remote repository request requested requests require required requirement requirements requires reserved reset resolution resolve resolved resource resources response responded result retry return returned returns reuse role root route row rows rule rules runtime
same satisfied satisfies schema scheme scope script second seconds section segmentation segment self semantic sequence server servers service session set setting settings shared shell short sign signal signature size skipped socket source space spec specified ssl stack stage stale started startup state statement static status stderr stdin stdout step storage stopped stream strict string style successfully such suite supported supports suspended symbol symbols syntax system
table tag target task tcp temporary terminal terminated test tests thread threads through time timed timeout tls token tokens top total trace traceback transaction transport tree true truncated type typecheck types
unable unauthorized unavailable unbound unchecked undeclared undefined unequal unexpected unhandled unified unimplemented unique unit units unknown unmet unmatched unrecognized unreachable unreadable unresolved unsatisfied unspecified unsupported unterminated untracked unused upstream url usage used user user's using utf
valid validate validated validation value values variable variables vector vendor version versions violated violates violation virtual visible volume
warning warnings wide width word worker workspace write writing wrong yield zero
amd arm bash bundler cargo clang cmake cpu css csv dll docker eslint fileno gcc gid glibc gnu go golang golangci gradle gpu html http https java javac javascript jest jdk jre jvm kubernetes kubectl libc linux make maven mypy mysql npm nodejs npx openssl perl php pip pnpm poetry postgres psql pytest python pypi react redis ruby rust rustc sdk sh shasum sqlite sql swift terraform ts tsc typescript uid utc uv vite vitest webpack windows xcode xml yaml yarn zsh
current find finds open add create start solve satisfy provide get head clone pathspec determine locate establish merge continuation hint trait traits struct version's code's
eacces eaddrinuse eaddrnotavail eagain ebadf ebusy econnaborted econnrefused econnreset eexist ehostunreach einval eio eisdir eloop emfile enetunreach enfile enoent enomem enospc enosys enotdir enotempty enotfound enotsup eof eperm epipe eproto erange eresolve erofs etarget etimedout eusage exdev sigabrt sigill sigint sigkill sigpipe sigsegv sigterm oom nullpointerexception
`

var knownWords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(failureWords) {
		out[w] = true
	}
	return out
})

// elided stands for what a program said in words of its own.
const elided = "…"

// Quote is what may be quoted of a failure's line where nobody has looked at it: words in
// which failures are told, placeholders, and words that stand in known as well, such as
// the command's. All else, be it in other letters or another language, is left out, and
// it is "" where nothing remains: a tool's output can hold anything, also what was written
// to be obeyed.
func Quote(line string, known ...string) string {
	also := map[string]bool{}
	for _, k := range known {
		for _, w := range letters(k) {
			also[strings.ToLower(w)] = true
		}
	}
	var out []string
	says := false
	for _, w := range strings.Fields(line) {
		runs := letters(w)
		ok := true
		for _, run := range runs {
			low := strings.ToLower(run)
			ok = ok && (knownWords()[low] || also[low] || placeholder(w, run) || errorName(run))
		}
		switch {
		case ok:
			says = says || len(runs) > 0
			out = append(out, w)
		case len(out) == 0 || out[len(out)-1] != elided:
			out = append(out, elided)
		}
	}
	if !says {
		return ""
	}
	return strings.Join(out, " ")
}

// letters are the runs of letters of a word; an apostrophe within is one of them.
func letters(s string) []string {
	list := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' })
	var out []string
	for _, w := range list {
		if w = strings.Trim(w, "'"); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func placeholder(word, run string) bool { return strings.Contains(word, "<"+run+">") }

// errorName is the name of a kind of error: ModuleNotFoundError.
func errorName(w string) bool {
	for _, end := range []string{"Error", "Exception", "Warning", "Fault"} {
		kind, ok := strings.CutSuffix(w, end)
		if !ok {
			continue
		}
		for _, part := range camel(kind) {
			if !knownWords()[strings.ToLower(part)] {
				return false
			}
		}
		return true
	}
	return false
}

// camel is a name's words: NotFound is Not, Found.
func camel(s string) []string {
	var out []string
	from := 0
	for i, r := range s {
		if i > from && unicode.IsUpper(r) {
			out, from = append(out, s[from:i]), i
		}
	}
	return append(out, s[from:])
}
