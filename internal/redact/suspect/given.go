package suspect

// Given finds what a program is given on its command line that is a secret, where the
// program's name stands at [start,end): mysql -p…, curl -u name:…, cargo login …; or what
// an option like --password-stdin has a program read: echo … | docker login
// --password-stdin. The places of the values are yielded.
//
// Like [Assigned] it is a whole rule and no filter.
func Given(s string, start, end int, yield func(from, to int)) {
	if start > 0 && (wordByte(s[start-1]) || s[start-1] == '.' || s[start-1] == '-') {
		return
	}
	if end < len(s) && (wordByte(s[end]) || s[end] == '-' || s[end] == ':' || s[end] == '.' || s[end] == '/') {
		return
	}
	name := s[start:end]
	for _, w := range stdin {
		if sameFold(name, w.word) {
			piped(s, start, end, w.after, yield)
		}
	}
	if end == len(s) || s[end] != ' ' && s[end] != '\t' {
		return
	}
	for i := range programs {
		if p := &programs[i]; p.is(name) {
			p.given(s, end, yield)
		}
	}
}

// GivenWords are the keywords of [Given], in lower case, each once.
func GivenWords() []string {
	var out []string
	seen := map[string]bool{}
	add := func(w string) {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	for i := range programs {
		for w := range words(programs[i].names) {
			add(w)
		}
	}
	for _, w := range stdin {
		add(w.word)
	}
	return out
}

// program is what some programs are given. An option of how begins with what its value is:
//
//	-p     the next word, or what follows an equals sign
//	*-p    what the option's own word goes on with
//	~-p    either
//	:-u    a name and a secret with a colon between them, as others have a percent sign or a comma
//	;-b    cookies
//	login>1    the first word after the word login
//	set>2=     what follows the equals sign in the second word after the word set
//	@>2        the second word after the program's name
type program struct {
	names string
	sub   string // a word that must come before the options, or none
	how   string
}

// programs are those that take a secret by an option that does not say so by its name.
var programs = [...]program{
	{"curl", "", ":-u :--user :-U :--proxy-user :-E :--cert --oauth2-bearer ;-b ;--cookie"},
	{"http xh", "", ":-a :--auth"},
	{"mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mariadb mariadb-dump mariadb-admin", "", "*-p password>1"},
	{"mycli", "", "~-p"},
	{"redis-cli", "", "-a auth>1 requirepass>1 masterauth>1"},
	{"sshpass", "", "~-p"},
	{"docker podman buildah nerdctl helm oras crane", "login", "~-p"},
	{"skopeo", "", ":--src-creds :--dest-creds :--creds"},
	{"skopeo", "login", "~-p"},
	{"az", "login", "~-p"},
	{"oc argocd", "login", "~-p"},
	{"az", "secret", "--value"},
	{"az", "", "--sas-token"},
	{"aws", "ssm", "--value"},
	{"aws", "", "--secret-string"},
	{"twine", "upload", "~-p"},
	{"poetry", "publish", "~-p"},
	{"poetry", "", "config>2"}, {"poetry", "", "config>3"},
	{"sqlcmd bcp", "", "~-P"},
	{"cqlsh mongosh mongo mongodump mongorestore mongoexport mongoimport snowsql", "", "~-p"},
	{"mosquitto_pub mosquitto_sub", "", "-P"},
	{"ipmitool", "", "-P"},
	{"ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami", "", "~-w"},
	{"zip unzip zipcloak", "", "~-P"},
	{"7z 7za 7zz", "", "*-p"},
	{"rar unrar", "", "*-hp *-p"},
	{"ssh-keygen", "", "~-N ~-P"},
	{"keytool jarsigner apksigner", "", "-storepass -keypass -srcstorepass -deststorepass"},
	{"openssl", "", "-passin -passout -pass -password"},
	{"openssl", "enc", "-k"},
	{"openssl", "dgst", "-hmac"},
	{"snmpwalk snmpget", "", "-A -X"},
	{"smbclient rpcclient", "", "%-U"},
	{"lftp", "", ",-u"},
	{"mc", "alias", "set>4"},
	{"cargo", "", "login>1"},
	{"npm", "", "_auth>1 _password>1"},
	{"ngrok", "", "authtoken>1 add-authtoken>1"},
	{"wandb", "", "login>1"},
	{"vault", "", "login>1"}, {"vault", "", "put>2="}, {"vault", "", "put>3="},
	{"snyk", "", "auth>1"},
	{"bw", "", "unlock>1 login>2"},
	{"doctl", "init", "-t"},
	{"codecov flyctl", "", "-t"},
	{"nuget", "", "setapikey>1"},
	{"dotnet", "nuget", "-k"},
	{"dotnet", "user-secrets", "set>2"},
	{"gh", "secret", "-b --body"},
	{"fly flyctl", "secrets", "set>1="},
	{"kubectl oc", "secret", "=--from-literal"},
	{"pulumi", "config", "set>2"},
	{"rabbitmqctl", "", "add_user>2 change_password>2 authenticate_user>2"},
	{"grafana-cli", "", "reset-admin-password>1"},
	{"nmcli", "", "password>1"},
	{"wpa_passphrase", "", "@>2"},
	{"htpasswd", "", "@>2"}, {"htpasswd", "", "@>3"},
	{"usermod useradd", "", "~-p"},
	{"rails", "", "--key"},
	{"openai", "", "-k"},
	{"twilio", "", "login>2"},
	{"civo", "", "save>2"},
	{"etcdctl", "", ":--user"},
	{"heroku", "", "config:set>1="},
	{"ansible-vault", "", "encrypt_string>1"},
	{"rclone", "", "secret_access_key>1 pass>1 key>1"},
	{"netlify", "", "--auth"},
	{"consul nomad influx", "", "-token"},
	{"influx", "", "-t --token"},
	{"gem", "push", "--key"},
}

// stdin is what says that a program reads a secret; after tells that it has a name and a
// colon before it.
var stdin = [...]struct {
	word  string
	after bool
}{
	{"--password-stdin", false}, {"--with-token", false}, {"chpasswd", true}, {"sudo -s", false},
	{"cryptsetup", false}, {"secret put", false}, {"secret set", false}, {"kinit", false}, {"passwd --stdin", false}, {"--data-file=-", false}, {"env add", false},
	{"op signin", false}, {"lpass login", false}, {"pass insert", false},
}

func (p *program) is(name string) bool {
	for w := range words(p.names) {
		if sameFold(name, w) {
			return true
		}
	}
	return false
}

// words are those of a list that has one space between two of them.
func words(list string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for from := 0; from < len(list); {
			to := from
			for to < len(list) && list[to] != ' ' {
				to++
			}
			if !yield(list[from:to]) {
				return
			}
			from = to + 1
		}
	}
}

// sameFold reports whether a text is a word in lower case, but for case.
func sameFold(text, word string) bool { return len(text) == len(word) && hasPrefixFold(text, word) }

// commandReach is how much of a command line is read, in bytes.
const commandReach = 2000

// word is one of a command line: where it stands, quotes included.
type word struct{ from, to int }

// nextWord reads the word at or after i; ok is false where the command ends.
func nextWord(s string, i, limit int) (w word, ok bool) {
	for i < limit && (s[i] == ' ' || s[i] == '\t' || s[i] == '\\' && i+1 < limit && s[i+1] == '\n') {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	w = word{i, i}
	for w.to < limit {
		switch c := s[w.to]; c {
		case ' ', '\t', '\n', '\r', ';', '|', '&', ')', '<', '>', 0:
			return w, w.to > w.from
		case '"', '\'', '`':
			to := w.to + 1
			for to < limit && s[to] != c && s[to] != '\n' {
				to++
			}
			if to == limit || s[to] != c { // of what is around the command
				return w, w.to > w.from
			}
			w.to = to + 1
		default:
			w.to++
		}
	}
	return w, w.to > w.from
}

// bare is a word without the quotes that it stands in, or that its end stands in.
func (w word) bare(s string) word {
	if w.from < w.to && s[w.from] == '$' && w.from+1 < w.to && s[w.from+1] == '\'' {
		w.from++
	}
	if w.to-w.from >= 2 {
		if c := s[w.from]; (c == '"' || c == '\'') && s[w.to-1] == c {
			return word{w.from + 1, w.to - 1}
		}
	}
	return w
}

func (p *program) given(s string, i int, yield func(from, to int)) {
	limit := min(len(s), i+commandReach)
	under := p.sub == ""
	var pending string // the option, or word, whose value comes
	left := 0
	if p.how[0] == '@' {
		pending, left = ">", int(p.how[2]-'0')
	}
	for {
		w, ok := nextWord(s, i, limit)
		if !ok {
			return
		}
		i = w.to
		if i < limit && (s[i] == '<' || s[i] == '>') { // read or written: no word of the program's
			return
		}
		text := s[w.from:w.to]
		if !under {
			under = sameFold(text, p.sub)
			if !under {
				continue
			}
		}
		if left > 0 && pending[0] == '>' && text[0] == '-' {
			continue
		}
		if left > 0 {
			if left--; left == 0 {
				take(s, w.bare(s), pending, yield)
				pending = ""
			}
			continue
		}
		pending, left = p.match(s, w, yield)
	}
}

// match holds a word against what the program is given by: pending is what kind the value
// is of that comes as the left-th word after it.
func (p *program) match(s string, w word, yield func(from, to int)) (pending string, left int) {
	text := s[w.from:w.to]
	if b := w.bare(s); b != w { // "-pS"
		text, w = s[b.from:b.to], b
	}
	if text == "" {
		return "", 0
	}
	for how := range words(p.how) {
		kind := how[0]
		if text[0] != '-' {
			name, n, ok := positional(how)
			if ok && sameFold(text, name) {
				kind := ">"
				if how[len(how)-1] == '=' {
					kind = ">="
				}
				return kind, n
			}
			continue
		}
		if kind != '-' {
			how = how[1:]
		}
		if how[0] != '-' {
			continue
		}
		long := len(how) > 2
		switch {
		case text == how:
			if kind != '*' {
				return string(kind), 1
			}
		case long && len(text) > len(how) && text[:len(how)] == how && text[len(how)] == '=':
			take(s, word{w.from + len(how) + 1, w.to}.bare(s), string(kind), yield)
			return "", 0
		case !long && len(text) > 2 && text[:2] == how && kind != '-' || long && kind == '*' && len(text) > len(how) && text[:len(how)] == how:
			from := w.from + len(how)
			if s[from] == '=' {
				from++
			}
			take(s, word{from, w.to}.bare(s), string(kind), yield)
			return "", 0
		case !long && kind != '*' && kind != '~' && kind != '-' && cluster(text, how[1]):
			return string(kind), 1
		}
	}
	return "", 0
}

// positional reads name>n of a program's list.
func positional(how string) (name string, n int, ok bool) {
	for i := range len(how) {
		if how[i] == '>' {
			return how[:i], int(how[i+1] - '0'), true
		}
	}
	return "", 0, false
}

// cluster reports whether a word is options of one letter, the last of which is c.
func cluster(text string, c byte) bool {
	for i := 1; i < len(text); i++ {
		if !(text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z') {
			return false
		}
	}
	return len(text) > 2 && len(text) < 8 && text[len(text)-1] == c
}

// take yields the secret in a value of a kind.
func take(s string, v word, kind string, yield func(from, to int)) {
	text := s[v.from:v.to]
	after := func(c byte) bool {
		for i := range len(text) {
			if text[i] == c {
				v.from += i + 1
				v = v.bare(s)
				text = s[v.from:v.to]
				return true
			}
		}
		return false
	}
	if text == "" || text[0] == '[' { // taken out already
		return
	}
	random := false
	switch kind {
	case ":", "%", ",":
		if !after(kind[0]) {
			return
		}
	case ";", "=":
		if !after('=') {
			return
		}
	case ">":
		random = true
	case ">=":
		if !after('=') {
			return
		}
		random = true
	default:
		if hasPrefixFold(text, "pass:") { // openssl
			v.from += len("pass:")
			text = s[v.from:v.to]
		}
	}
	if random && !looksRandom(text) || !givenSecret(text) {
		return
	}
	yield(v.from, v.to)
}

// givenSecret reports whether the value of an option that is for secrets is one, and no
// variable, no placeholder, no name that a manual has in its place.
func givenSecret(text string) bool {
	if len(text) < 4 || len(text) > maxAssigned || placeholder(text) || reference(text) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; spaceByte(c) || c == '"' || c == '\'' || c == '`' || c == 0 {
			return false
		}
	}
	t := traitsOf(text)
	if t.distinct < 3 {
		return false
	}
	if t.digits == 0 && t.marks == 0 && (hasSecretWord(text) || containsFold(text, "word") || containsFold(text, "login")) {
		return false // mysql -ppassword of a manual
	}
	return !hasPrefixFold(text, "env:") && !hasPrefixFold(text, "file:") && !hasPrefixFold(text, "fd:") && !hasPrefixFold(text, "stdin")
}

// looksRandom reports whether a text by itself is rather a secret than a word, a name, a
// number or a path: digits among capitals and small letters, or letters that make no words.
func looksRandom(text string) bool {
	t := traitsOf(text)
	letters := t.lower + t.upper
	if len(text) < minAssigned || t.distinct < 6 || isPath(text) || expression(text) || hasSecretWord(text) && 5*oddness(text) < 2*len(text) {
		return false
	}
	switch {
	case t.digits > 0 && letters > 0:
		return !identifier(text, 3) && (t.under == 0 || t.digits > 1 && t.upper > 0 || len(text) > 24)
	case t.marks > 0 && letters > 0:
		return t.marks < letters && t.under == 0 && t.upper > 0
	}
	return letters == len(text) && scrambled(text)
}

// piped finds the secret that the program at [start,end) reads: from echo or printf before
// a pipe, or from a string after three angles.
func piped(s string, start, end int, named bool, yield func(from, to int)) {
	kind := "-"
	if named {
		kind = ":"
	}
	line := max(0, start-commandReach)
	pipe := -1
	for i := start - 1; i >= line; i-- {
		if c := s[i]; c == '\n' || c == '&' || c == ';' && pipe < 0 {
			line = i + 1
			break
		} else if c == '|' {
			pipe = i
			break
		}
	}
	if pipe >= 0 {
		echoed(s, line, pipe, kind, yield)
	}
	for i := end; i+3 < len(s) && i-end < 200 && s[i] != '\n'; i++ {
		if s[i] == '<' && s[i+1] == '(' { // < <(echo …)
			to := i + 2
			for to < len(s) && s[to] != ')' && s[to] != '\n' {
				to++
			}
			echoed(s, i+2, to, kind, yield)
			return
		}
		if s[i] == '<' && s[i+1] == '<' && s[i+2] == '<' {
			if w, ok := nextWord(s, i+3, min(len(s), i+3+commandReach)); ok {
				take(s, w.bare(s), kind, yield)
			}
			return
		}
	}
}

// echoed takes the last word of the echo or printf that ends at pipe.
func echoed(s string, line, pipe int, kind string, yield func(from, to int)) {
	at := -1
	for i := pipe - 4; i >= line && s[i] != '\n'; i-- {
		if (i == 0 || !wordByte(s[i-1])) && (hasPrefixFold(s[i:pipe], "echo ") || hasPrefixFold(s[i:pipe], "printf ")) {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	var last word
	for i := at; ; {
		w, ok := nextWord(s, i, pipe)
		if !ok {
			break
		}
		last, i = w, w.to
	}
	if b := last.bare(s); last.from > at && s[last.from] != '-' {
		take(s, b, kind, yield)
	}
}
