// Package fleet is the connection to the NATS servers that the machines of a fleet
// share: who this machine is there, what things are called, and what the servers' clock
// says. What is kept there is for those who use it: the queue (queue/jet), workers.
//
// It reads the files of credentials, keys and certificates that the user's settings
// name, and writes no file. It takes no lock.
package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/config"
	"reprise/internal/durable"
)

// What the errors of a connection are about; they are found by errors.Is.
var (
	// ErrUnreachable: no server answers, or none that could. What was asked may have
	// been done all the same, where it was sent before the network went.
	ErrUnreachable = errors.New("the fleet's servers cannot be reached")
	// ErrRefused: the servers do not let this machine in, or not do that.
	ErrRefused = errors.New("the fleet's servers refuse this machine")
	// ErrSetup: the settings, or the servers', are not such that it could work.
	ErrSetup = errors.New("the fleet is not set up")
	// ErrFull: the servers' store, or what this account may have of it, has no room.
	ErrFull = errors.New("the fleet's servers have no room")
)

// How long things may take.
const (
	// DialTimeout is for reaching one server.
	DialTimeout = 3 * time.Second
	// AskTimeout is for one answer of a server that is reached.
	AskTimeout = 5 * time.Second
)

// Options say who connects, and where to.
type Options struct {
	// Servers are addresses with commas between, as [config.Settings] has them in Queue.
	Servers  string
	Settings config.Fleet
	// Name is what operators of the servers see of this connection, such as
	// "reprise loop on build7".
	Name string
	// Note is told in one line when the connection is lost, is there again, or the
	// servers refuse something. nil is nobody. It is called from the connection's own
	// goroutine and must not wait.
	Note func(string)
	// Now is the machine's clock, with its monotonic reading ([time.Now]).
	Now func() time.Time
	// Patience is how long an outage may last before what waits for it fails; 0 leaves
	// that to the context of each call.
	Patience time.Duration
}

// Conn is a connection to the servers. It mends itself: while the network is away what
// is asked waits, and fails with the context of the call.
type Conn struct {
	// NC is the connection itself, JS what stores things on the servers.
	NC *nats.Conn
	JS jetstream.JetStream

	opt Options

	mu      sync.Mutex
	refused string    // the last thing that the servers refused
	at      time.Time // and when, by the machine's clock
	deaf    string    // the refusal to let this machine read the answers to what it asks
	barred  bool      // it was told that the servers do not let this machine in
	waiting map[*asking]struct{}
}

// asking is somebody who waits for an answer.
type asking struct {
	names []string // of what is asked
	end   context.CancelCauseFunc
}

// Connect connects to one of the servers. The error is [ErrUnreachable], [ErrRefused] or
// [ErrSetup], and says which setting to look at.
func Connect(ctx context.Context, opt Options) (*Conn, error) {
	if opt.Servers == "" || opt.Servers == config.QueueFiles {
		return nil, fmt.Errorf("%w: the settings name no servers; write `queue: nats://host:port` into the settings file", ErrSetup)
	}
	c := &Conn{opt: opt}
	how, err := c.options()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", opt.Servers, err)
	}
	if c.NC, err = nats.Connect(opt.Servers, how...); err != nil {
		return nil, c.Explain("connect", err)
	}
	if c.JS, err = jetstream.New(c.NC, jetstream.WithDefaultTimeout(AskTimeout)); err != nil {
		c.NC.Close()
		return nil, fmt.Errorf("connect to %s: %w", opt.Servers, err)
	}
	return c, nil
}

// again hears why the servers could not be connected to anew. That they refuse this machine is
// told once; that none is there was.
func (c *Conn) again(err error) {
	why := c.Explain("connect again", err)
	c.mu.Lock()
	tell := errors.Is(why, ErrRefused) && !c.barred
	c.barred = c.barred || tell
	c.mu.Unlock()
	if tell {
		c.note(why.Error() + "; it is tried on")
	}
}

// options are what the client is told.
func (c *Conn) options() ([]nats.Option, error) {
	s := c.opt.Settings
	how := []nats.Option{
		nats.Name(c.opt.Name),
		nats.Timeout(DialTimeout),
		nats.MaxReconnects(-1),
		// Who is refused twice is tried on, too: a slip in the servers' list of users, or credentials
		// that have ended and are replaced, must not leave each machine standing until it is
		// started anew. The first connection of a program is not of this kind, and fails at once.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.again(err) }),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		// A server that is gone without a word is noticed within six seconds.
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		// What was written while no server was there is not sent late: whoever asks asks
		// again, and knows what it is about.
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.heard(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.note("the connection to the fleet's servers is lost (" + err.Error() + "); it is tried again until it is there")
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.mu.Lock()
			c.deaf = "" // it is refused again, or not
			c.barred = false
			c.mu.Unlock()
			c.note("connected to " + nc.ConnectedAddr() + " again")
		}),
	}
	if s.Inbox != "" {
		how = append(how, nats.CustomInboxPrefix(s.Inbox))
	}
	switch {
	case s.Credentials != "" && s.NKey != "":
		return nil, fmt.Errorf("%w: fleet.credentials and fleet.nkey are both set, and each says who this machine is; keep one of them", ErrSetup)
	case s.Credentials != "":
		if err := private("fleet.credentials", s.Credentials); err != nil {
			return nil, err
		}
		if err := hasJWT(s.Credentials); err != nil {
			return nil, err
		}
		how = append(how, nats.UserCredentials(s.Credentials))
	case s.NKey != "":
		if err := private("fleet.nkey", s.NKey); err != nil {
			return nil, err
		}
		key, err := nats.NkeyOptionFromSeed(s.NKey)
		if err != nil {
			return nil, fmt.Errorf("%w: fleet.nkey: %s holds no seed of a user's NKey (it begins with SU): %w", ErrSetup, s.NKey, err)
		}
		how = append(how, key)
	}
	encrypted, err := c.encryption()
	if err != nil {
		return nil, err
	}
	if encrypted != nil {
		how = append(how, nats.Secure(encrypted))
	}
	return how, nil
}

// encryption is how connections are encrypted; nil leaves that to what the server wants.
func (c *Conn) encryption() (*tls.Config, error) {
	s := c.opt.Settings
	if s.CA == "" && s.Cert == "" && !strings.HasPrefix(c.opt.Servers, "tls://") {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		pem, err := durable.Read(s.CA)
		if err != nil {
			return nil, fmt.Errorf("%w: fleet.ca: %w", ErrSetup, err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: fleet.ca: %s holds no certificate in PEM", ErrSetup, s.CA)
		}
	}
	if s.Cert != "" {
		if err := private("fleet.key", s.Key); err != nil {
			return nil, err
		}
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: fleet.cert and fleet.key: %w", ErrSetup, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// private refuses a secret that other users of the machine can read.
func private(setting, file string) error {
	fi, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSetup, setting, err)
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%w: %s: %s is no regular file", ErrSetup, setting, file)
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s: others can read %s, which is a secret (its mode is %04o); `chmod 600` it", ErrSetup, setting, file, fi.Mode().Perm())
	}
	return nil
}

// hasJWT refuses a file of credentials without a user's JWT: the client would send what is
// there in its place, and all that the servers say of it is that they let nobody in. Without its
// seed the client's error names no setting.
func hasJWT(file string) error {
	data, err := durable.Read(file)
	if err != nil {
		return fmt.Errorf("%w: fleet.credentials: %w", ErrSetup, err)
	}
	switch {
	case bytes.Contains(data, []byte("eyJ")): // as each begins
		if !bytes.HasPrefix(data, []byte("SU")) && !bytes.Contains(data, []byte("\nSU")) {
			return fmt.Errorf("%w: fleet.credentials: %s holds a user's JWT, and no seed (it begins with SU): both are in what `nsc generate creds` makes", ErrSetup, file)
		}
		return nil
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("SU")):
		return fmt.Errorf("%w: fleet.credentials: %s holds the seed of an NKey alone: fleet.nkey is the setting for that", ErrSetup, file)
	}
	return fmt.Errorf("%w: fleet.credentials: %s holds no user's JWT; `nsc generate creds` makes such a file", ErrSetup, file)
}

func (c *Conn) note(text string) {
	if c.opt.Note != nil {
		c.opt.Note(text)
	}
}

// heard keeps what the servers refused: the request that it was about just gets no answer.
func (c *Conn) heard(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		c.again(err) // who is not let in hears it here, too
		return
	}
	c.mu.Lock()
	c.refused, c.at = strings.TrimPrefix(err.Error(), "nats: "), c.opt.Now()
	if strings.Contains(c.refused, "Subscription to \""+c.inbox()+".") { // where all answers come
		c.deaf = c.refused
	}
	for a := range c.waiting {
		if c.deaf != "" || slices.ContainsFunc(a.names, func(name string) bool { return strings.Contains(c.refused, name) }) {
			a.end(ErrRefused)
		}
	}
	c.mu.Unlock()
	c.note("the fleet's servers refuse something: " + err.Error())
}

// inbox is what the subjects begin with to which the servers answer.
func (c *Conn) inbox() string {
	if c.opt.Settings.Inbox != "" {
		return c.opt.Settings.Inbox
	}
	return "_INBOX"
}

// UntilRefused is ctx until the servers refuse this machine something in whose subject one
// of the names stands: then [context.Cause] of it is [ErrRefused]. A request that is refused
// gets no answer, and the refusal comes beside it, so that who waits waits for nothing.
// What others of this process are refused under other names is not meant. stop must be
// called.
func (c *Conn) UntilRefused(ctx context.Context, names ...string) (until context.Context, stop context.CancelFunc) {
	until, end := context.WithCancelCause(ctx)
	a := &asking{names, end}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[*asking]struct{}{}
	}
	c.waiting[a] = struct{}{}
	if c.deaf != "" {
		end(ErrRefused)
	}
	return until, func() {
		c.mu.Lock()
		delete(c.waiting, a)
		c.mu.Unlock()
		end(nil)
	}
}

// lately is what the servers refused within the time that one request takes.
func (c *Conn) lately() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == "" || c.opt.Now().Sub(c.at) > 2*AskTimeout {
		return ""
	}
	return c.refused
}

// Away reports whether an error is one of a network or of servers that are away for a
// moment, so that asking again may help.
func Away(err error) bool {
	for _, e := range []error{
		ErrUnreachable, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting,
		nats.ErrNoServers, nats.ErrStaleConnection, nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" { // the host's name, the way there, or nobody who answers
		return true
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) || Full(err) {
		return false
	}
	// A server that is to hold a replica is not back yet: all of them are started anew, or
	// have found each other just now. Where there are too few, it says something else.
	offline := api.ErrorCode == noPeers && strings.Contains(api.Description, "peer offline")
	// What was sent before under this id is not decided yet, as where there is no majority:
	// asked again, the servers say what became of it.
	return offline || api.ErrorCode == undecided || (api.Code == 503 || api.Code == 500) && api.ErrorCode != noCluster
}

// Full reports whether an error says that the servers' store has no room: for what a new
// stream is to be allowed, which they set aside when it is made, or in a stream for more.
func Full(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case noStorage, noResources:
		return true
	case noPeers:
		return strings.Contains(api.Description, "insufficient storage")
	case notStored:
		return strings.Contains(api.Description, "maximum bytes exceeded")
	}
	return false
}

// GetOrMake is a bucket, store or stream that is made where it is not there, by whichever of
// several processes is the first.
func GetOrMake[T any](get, make func() (T, error)) (T, error) {
	t, err := get()
	if !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrBucketNotFound) {
		return t, err
	}
	t, err = make()
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, jetstream.ErrBucketExists) {
		return get()
	}
	return t, err
}

// Codes of the servers for which the client has no names.
const (
	noPeers     jetstream.ErrorCode = 10005 // JSClusterNoPeersErrF: no place for a stream's replicas
	noResources jetstream.ErrorCode = 10023 // JSInsufficientResourcesErr
	noStorage   jetstream.ErrorCode = 10047 // JSStorageResourcesExceededErr
	noCluster   jetstream.ErrorCode = 10074 // JSStreamReplicasNotSupportedErr: one server, and fleet.replicas says more
	notStored   jetstream.ErrorCode = 10077 // JSStreamStoreFailedF
	undecided   jetstream.ErrorCode = 10158 // JSStreamDuplicateMessageConflict
)

// Explain says what an error of the client means, and what to do. doing is what was
// asked, such as "claim". It returns nil for nil.
func (c *Conn) Explain(doing string, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil, errors.Is(err, ErrUnreachable), errors.Is(err, ErrRefused), errors.Is(err, ErrSetup), errors.Is(err, ErrFull), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported),
		strings.Contains(strings.ToLower(err.Error()), "authentication"):
		return fmt.Errorf("%w: %s: %s: %w; look at fleet.credentials, fleet.nkey or fleet.cert of the settings, and at the servers' list of users", ErrRefused, doing, c.opt.Servers, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("%w: %s: %w; docs/fleet.md lists what each role must be allowed", ErrRefused, doing, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: %s: %s: the server does not encrypt: let it, or write nats:// in `queue` where tls:// stands, and leave fleet.ca and fleet.cert out", ErrSetup, doing, c.opt.Servers)
	case wantsCertificate(err):
		if c.opt.Settings.Cert == "" {
			return fmt.Errorf("%w: %s: %s: the server wants to see a certificate of this machine's, as it seems: fleet.cert and fleet.key name its files (%w)", ErrRefused, doing, c.opt.Servers, err)
		}
		return fmt.Errorf("%w: %s: %s: the server does not take the certificate that fleet.cert names, as it seems (%w)", ErrRefused, doing, c.opt.Servers, err)
	case expired(err):
		return fmt.Errorf("%w: %s: %s: %w; have the server's certificate renewed, or set this machine's clock, if that is what is wrong", ErrRefused, doing, c.opt.Servers, err)
	case isTLS(err):
		return fmt.Errorf("%w: %s: %s: %w; fleet.ca names the file of the certificates by which the servers are known", ErrRefused, doing, c.opt.Servers, err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: %s: %s: the servers keep nothing for this account: JetStream is off there", ErrSetup, doing, c.opt.Servers)
	case errors.As(err, &api) && api.ErrorCode == noCluster:
		return fmt.Errorf("%w: %s: fleet.replicas is %d, and there is one server alone: %w", ErrSetup, doing, c.Replicas(), err)
	case Full(err):
		return fmt.Errorf("%w: %s: %s: %w; give their store more (max_file_store of jetstream, or the account's limit), or remove streams that nobody needs", ErrFull, doing, c.opt.Servers, err)
	case Away(err):
		if err := c.Refused(doing); err != nil {
			return err
		}
		if c.noJetStream(err) {
			return fmt.Errorf("%w: %s: %s: the server is there, and has no JetStream; nor does another answer: start it with -js", ErrUnreachable, doing, c.opt.Servers)
		}
		if errors.Is(err, nats.ErrNoResponders) && c.NC != nil && c.NC.IsConnected() {
			return fmt.Errorf("%w: %s: %s: the server is there, and its JetStream does not answer: it is off for this account (`nsc edit account --js-disk-storage`, or jetstream of the account in the server's configuration), or no leader is chosen (%w)", ErrUnreachable, doing, c.opt.Servers, err)
		}
		if errors.Is(err, nats.ErrReconnectBufExceeded) { // nothing is kept to be sent later
			return fmt.Errorf("%w: %s: %s: the connection is lost, and is tried again", ErrUnreachable, doing, c.opt.Servers)
		}
		if c.silent(err) {
			return fmt.Errorf("%w: %s: %s: the connection is there, and what was asked was not answered in time; the servers' log says why, such as that their disk is full (room may have to be followed by a restart) or that no leader is chosen (%w)", ErrUnreachable, doing, c.opt.Servers, err)
		}
		return fmt.Errorf("%w: %s: %s: %w", ErrUnreachable, doing, c.opt.Servers, err)
	case errors.As(err, &api):
		return fmt.Errorf("%w: %s: %w", ErrSetup, doing, err)
	}
	return fmt.Errorf("fleet: %s: %w", doing, err)
}

// silent reports whether an error is that nothing was answered in time, over a connection
// that lives: one that is gone is noticed sooner than anybody gives up.
func (c *Conn) silent(err error) bool {
	return (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)) && c.NC != nil && c.NC.IsConnected()
}

// noJetStream reports whether an error is that nobody answers, and the server that this
// machine is connected to has no JetStream.
func (c *Conn) noJetStream(err error) bool {
	if !errors.Is(err, nats.ErrNoResponders) || c.NC == nil || !c.NC.IsConnected() {
		return false
	}
	on, _ := c.NC.ConnectedServerJetStream()
	return !on
}

// Refused says what the servers have refused just now, and what to do; nil where they have
// refused nothing.
func (c *Conn) Refused(doing string) error {
	c.mu.Lock()
	deaf := c.deaf
	c.mu.Unlock()
	switch r := c.lately(); {
	case deaf != "":
		return fmt.Errorf("%w: %s: it may not read the answers that are meant for it (%s); fleet.inbox of the settings must be what the servers let this machine subscribe to", ErrRefused, doing, deaf)
	case r == "":
		return nil
	case strings.Contains(r, ".STREAM.CREATE."):
		return fmt.Errorf("%w: %s: it is not on the servers yet, and this machine may not make it (%s); who may, such as ADMIN in docs/fleet.md, makes all of it by `reprise worker prepare --servers`", ErrRefused, doing, r)
	default:
		return fmt.Errorf("%w: %s: %s; docs/fleet.md lists what each role must be allowed", ErrRefused, doing, r)
	}
}

func isTLS(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var bad x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &bad) || errors.As(err, &verify) ||
		errors.Is(err, nats.ErrSecureConnRequired)
}

// expired reports whether a server's certificate is not valid at this time, by this machine's clock.
func expired(err error) bool {
	var bad x509.CertificateInvalidError
	return errors.As(err, &bad) && bad.Reason == x509.Expired
}

// wantsCertificate reports whether a server has ended the connection for want of a
// certificate, or of one that it takes. That comes after the handshake, as an alert or
// with no word at all.
func wantsCertificate(err error) bool {
	return slices.ContainsFunc([]string{"closed by remote after TLS handshake", "tls: certificate required", "tls: bad certificate", "tls: unknown certificate", "tls: expired certificate"},
		func(sign string) bool { return strings.Contains(err.Error(), sign) })
}

// Replicas is how many copies of a new stream or bucket the servers are to keep.
func (c *Conn) Replicas() int {
	switch {
	case c.opt.Settings.Replicas > 0:
		return c.opt.Settings.Replicas
	case c.NC.ConnectedClusterName() != "":
		return 3
	}
	return 1
}

// Names are the names of a project's things on the servers.
func (c *Conn) Names(project string) Names { return NamesOf(c.opt.Settings.Namespace, project) }

// Workers is the bucket in which machines say that they work.
func (c *Conn) Workers() string { return c.opt.Settings.Namespace + "-workers" }

// Servers are the addresses that the settings have.
func (c *Conn) Servers() string { return c.opt.Servers }

// Encrypted reports whether what is said to the servers is.
func (c *Conn) Encrypted() bool {
	_, err := c.NC.TLSConnectionState()
	return err == nil
}

// Loopback reports whether the server is on this machine.
func (c *Conn) Loopback() bool {
	host, _, err := net.SplitHostPort(c.NC.ConnectedAddr())
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// Close ends the connection. What was not answered fails.
func (c *Conn) Close() error {
	c.NC.Close()
	return nil
}
