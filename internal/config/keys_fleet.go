package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// QueueFiles is the value of [Settings.Queue] for a queue of plain files on this
// machine.
const QueueFiles = "files"

// Fleet is how the servers are reached that [Settings.Queue] names. Only the user's
// own settings have this section and the line "queue": a repository's project.yaml
// has neither, or it could have the work of everybody who clones it sent elsewhere.
type Fleet struct {
	Namespace   string // what all names on the servers begin with
	Credentials string // file of a user's JWT and seed, as nsc writes it; "" is none
	NKey        string // file with the seed of a user's NKey; "" is none
	CA          string // file of the certificates by which servers are known; "": the system's
	Cert, Key   string // files of the client's own certificate; both or neither
	Inbox       string // what subjects for answers begin with; "": the client's default
	Replicas    int    // copies of what is made on the servers; 0: three in a cluster, else one
}

// defaultNamespace is before the names of everything on the servers.
const defaultNamespace = "reprise"

func fleetKeys() []key {
	return []key{
		strKey("queue", "where work items are: files, on this machine, or nats://host:port[,host:port…] (tls:// where the connection must be encrypted), the servers of a fleet",
			func(s *Settings) *string { return &s.Queue }, checkQueue),
		strKey("fleet.namespace", "what the names of streams, buckets and subjects on the servers begin with", func(s *Settings) *string { return &s.Fleet.Namespace }, checkNamespace),
		strKey("fleet.credentials", "file with the user's JWT and seed by which the servers know this machine (a .creds file)", func(s *Settings) *string { return &s.Fleet.Credentials }, checkPath),
		strKey("fleet.nkey", "file with the seed of the NKey by which they know it", func(s *Settings) *string { return &s.Fleet.NKey }, checkPath),
		strKey("fleet.ca", "file of certificates by which the servers are known; empty: those of the system", func(s *Settings) *string { return &s.Fleet.CA }, checkPath),
		strKey("fleet.cert", "file of this machine's own certificate, for servers that want one", func(s *Settings) *string { return &s.Fleet.Cert }, checkPath),
		strKey("fleet.key", "file of its key", func(s *Settings) *string { return &s.Fleet.Key }, checkPath),
		strKey("fleet.inbox", "what subjects for answers begin with, where this machine may only read its own", func(s *Settings) *string { return &s.Fleet.Inbox }, checkInbox),
		intKey("fleet.replicas", "copies that the servers keep of what is made there; 0: three in a cluster, else one", func(s *Settings) *int { return &s.Fleet.Replicas }, 0, 5),
	}
}

// checkQueue reads "files", or the addresses of servers: one URL, of which further
// hosts may follow after commas. The value has the scheme and the port of each.
func checkQueue(_ Env, text string) (string, string, string) {
	const remedy = "write files, or nats://host:port, further servers after commas; tls:// where the connection must be encrypted"
	if text == QueueFiles {
		return text, "", ""
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return "", fmt.Sprintf("%q is neither files nor an address of NATS servers", shown(withoutUser(text))), remedy
	}
	var out []string
	for _, one := range strings.Split(rest, ",") {
		if _, host, ok := strings.Cut(one, "://"); ok {
			if !strings.HasPrefix(one, scheme+"://") {
				return "", fmt.Sprintf("%q has servers by nats:// and by tls://", shown(withoutUser(text))), "give all of them one scheme: tls:// encrypts the connections to all"
			}
			one = host
		}
		u, err := url.Parse(scheme + "://" + one)
		if err == nil && u.User != nil {
			return "", "has a user or a password in it", "write the address alone, and keep what proves who you are in the file that fleet.credentials or fleet.nkey names"
		}
		if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.Hostname(), " \t*") {
			return "", fmt.Sprintf("%q is no address of a server", shown(withoutUser(one))), remedy
		}
		port := u.Port()
		if port == "" {
			port = "4222"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fmt.Sprintf("%q is not a port", shown(port)), remedy
		}
		out = append(out, scheme+"://"+net.JoinHostPort(u.Hostname(), port))
	}
	return strings.Join(out, ","), "", ""
}

// withoutUser is an address that is shown in an error, without what may be a password.
func withoutUser(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "…" + s[i:]
	}
	return s
}

// checkNamespace allows what may stand in a subject and in a bucket's name.
func checkNamespace(_ Env, text string) (string, string, string) {
	ok := text != "" && len(text) <= 32
	for _, c := range []byte(text) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		return "", fmt.Sprintf("%q is not 1 to 32 lower-case letters, digits, \"-\" and \"_\"", shown(text)), "write one word, such as " + defaultNamespace
	}
	return text, "", ""
}

// checkInbox allows a subject.
func checkInbox(e Env, text string) (string, string, string) {
	if value, problem, remedy := checkWord(e, text); problem != "" {
		return value, problem, remedy
	}
	if strings.ContainsAny(text, " \t*>") || strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") || strings.Contains(text, "..") {
		return "", fmt.Sprintf("%q is no subject", shown(text)), "write words with dots between them, such as _INBOX_laptop"
	}
	return text, "", ""
}

// fleet refuses half of a pair.
func (l *loader) fleet() {
	f := l.out.Fleet
	say := func(key, problem, remedy string) {
		l.errs = append(l.errs, &Error{File: l.file, Line: l.set[key], Column: 1, Key: key, Problem: problem, Remedy: remedy})
	}
	switch {
	case len(l.errs) > 0:
	case f.Cert != "" && f.Key == "":
		say("fleet.cert", "is set and fleet.key is not", "name the file of the certificate's key, too")
	case f.Key != "" && f.Cert == "":
		say("fleet.key", "is set and fleet.cert is not", "name the file of the certificate, too")
	}
}
