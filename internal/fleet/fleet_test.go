package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
)

func options(servers string, s config.Fleet) fleet.Options {
	if s.Namespace == "" {
		s.Namespace = "reprise"
	}
	return fleet.Options{Servers: servers, Settings: s, Name: "test", Now: time.Now}
}

func secret(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An error says what it is about, and names the setting to look at.
func TestConnectErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "nats://" + l.Addr().String()
	l.Close()
	open := secret(t, "open.creds", []byte("x"))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	_, seed := fleettest.NKey(t)
	locked := fleettest.Server(t, func(o *server.Options) { o.Username, o.Password = "somebody", "else" }).ClientURL()
	plain := strings.Replace(fleettest.Server(t).ClientURL(), "nats://", "tls://", 1)
	for name, c := range map[string]struct {
		servers string
		s       config.Fleet
		want    error
		says    string
	}{
		"no servers":          {"files", config.Fleet{}, fleet.ErrSetup, "queue: nats://"},
		"no such host":        {"nats://nobody.invalid:4222", config.Fleet{}, fleet.ErrUnreachable, "nobody.invalid"},
		"nobody there":        {gone, config.Fleet{}, fleet.ErrUnreachable, gone},
		"not let in":          {locked, config.Fleet{}, fleet.ErrRefused, "fleet.credentials"},
		"a stranger's key":    {locked, config.Fleet{NKey: secret(t, "u.nk", seed)}, fleet.ErrRefused, "fleet.nkey"},
		"both":                {gone, config.Fleet{NKey: "/a", Credentials: "/b"}, fleet.ErrSetup, "keep one of them"},
		"no file":             {gone, config.Fleet{Credentials: filepath.Join(t.TempDir(), "no")}, fleet.ErrSetup, "fleet.credentials"},
		"a seed alone":        {gone, config.Fleet{Credentials: secret(t, "u.creds", seed)}, fleet.ErrSetup, "fleet.nkey"},
		"no JWT":              {gone, config.Fleet{Credentials: secret(t, "u.creds", []byte("nothing"))}, fleet.ErrSetup, "nsc"},
		"a JWT alone":         {gone, config.Fleet{Credentials: secret(t, "u.creds", []byte("-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n"))}, fleet.ErrSetup, "fleet.credentials"},
		"not encrypted":       {plain, config.Fleet{}, fleet.ErrSetup, "nats:// in `queue`"},
		"no seed":             {gone, config.Fleet{NKey: secret(t, "u.nk", []byte("nothing"))}, fleet.ErrSetup, "fleet.nkey"},
		"no certificate":      {gone, config.Fleet{CA: secret(t, "ca.pem", []byte("nothing"))}, fleet.ErrSetup, "fleet.ca"},
		"others can read it":  {gone, config.Fleet{Credentials: open}, fleet.ErrSetup, "chmod 600"},
		"the key can be read": {gone, config.Fleet{Cert: open, Key: open}, fleet.ErrSetup, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.says == "chmod 600" {
				t.Skip("there are no modes of files")
			}
			conn, err := fleet.Connect(t.Context(), options(c.servers, c.s))
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that is %q and says %q", err, c.want, c.says)
			}
		})
	}
}

// A machine is known by its NKey, over a connection whose server it knows by the
// certificate that the settings name, and shows its own.
func TestKeysAndEncryption(t *testing.T) {
	public, seed := fleettest.NKey(t)
	certPEM, keyPEM := selfSigned(t)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	s := fleettest.Server(t, func(o *server.Options) {
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
		o.TLSVerify, o.TLSTimeout = true, 30
	})
	settings := config.Fleet{
		NKey: secret(t, "u.nk", append(seed, '\n')), CA: secret(t, "ca.pem", certPEM), Cert: secret(t, "c.pem", certPEM), Key: secret(t, "k.pem", keyPEM),
	}
	where := "tls://" + strings.TrimPrefix(strings.TrimPrefix(s.ClientURL(), "nats://"), "tls://")
	c, err := fleet.Connect(t.Context(), options(where, settings))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.JS.AccountInfo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := c.NC.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Fatal(state, err)
	}
	without := settings
	without.Cert, without.Key = "", ""
	_, err = fleet.Connect(t.Context(), options(where, without))
	if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "fleet.cert and fleet.key name") {
		t.Errorf("no certificate of this machine's: %v", err)
	}
	// Of a certificate that has expired fleet.ca is not what is wrong, and of one of this machine's it
	// is told whose it is.
	for _, test := range []struct {
		err  error
		says string
	}{
		{x509.CertificateInvalidError{Reason: x509.Expired}, "have the server's certificate renewed"},
		{errors.New("remote error: tls: expired certificate"), "the certificate that fleet.cert names"},
	} {
		if err := c.Explain("connect", test.err); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "fleet.ca ") {
			t.Errorf("%v", err)
		}
	}
	settings.CA = ""
	_, err = fleet.Connect(t.Context(), options(where, settings))
	if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "fleet.ca") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
}

// TestRefusedAndTakenAgain: a machine whose user is taken out of the servers' list, and put back,
// is connected again by itself, and was told why not meanwhile. After the second refusal the
// connection was closed for good, so that a whole fleet stood still.
func TestRefusedAndTakenAgain(t *testing.T) {
	public, seed := fleettest.NKey(t)
	other, _ := fleettest.NKey(t)
	dir := ""
	s := fleettest.Server(t, func(o *server.Options) { dir, o.Nkeys = o.StoreDir, []*server.NkeyUser{{Nkey: public}} })
	opt := options(s.ClientURL(), config.Fleet{NKey: secret(t, "u.nk", append(seed, '\n'))})
	notes := make(chan string, 100)
	opt.Note = func(text string) { notes <- text }
	c, err := fleet.Connect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	users := func(public string) {
		t.Helper()
		o := fleettest.Options(dir)
		o.Port = s.Addr().(*net.TCPAddr).Port
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
		if err := s.ReloadOptions(o); err != nil {
			t.Fatal(err)
		}
	}
	users(other)
	until := func(want string) {
		t.Helper()
		for deadline := time.After(time.Minute); ; {
			select {
			case text := <-notes:
				if strings.Contains(text, want) {
					return
				}
			case <-deadline:
				t.Fatalf("nothing is told of %q; the connection is %v", want, c.NC.Status())
			}
		}
	}
	until("refuse this machine")
	deadline := time.Now().Add(time.Minute)
	for tried := c.NC.Stats().Reconnects; c.NC.Stats().Reconnects < tried+3; { // refused again and again
		if c.NC.IsClosed() || time.Now().After(deadline) {
			t.Fatalf("the connection is %v for good", c.NC.Status())
		}
		time.Sleep(10 * time.Millisecond)
	}
	users(public)
	until("connected to")
	if _, err := c.JS.AccountInfo(t.Context()); err != nil {
		t.Error(err)
	}
}

func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}}, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// Names are such as servers take, and different projects have different ones.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, project := range []string{"", "shop", "shop.api", "shop-api", "shop_api", "global", "d", "."} {
		n := fleet.NamesOf("reprise", project)
		if strings.ContainsAny(n.Queue, ".*> ") || seen[n.Queue] != "" {
			t.Errorf("%q: %s, as %q", project, n.Queue, seen[n.Queue])
		}
		seen[n.Queue] = project + "!"
	}
	if n := fleet.NamesOf("team", "shop.api"); n.Queue != "team-queue-shopDapi" || n.OutputSubject("run-1") != "team.shopDapi.output.run-1" {
		t.Errorf("%+v", n)
	}
}

// The clock goes on from what the servers said, by the machine's monotonic clock alone.
func TestClock(t *testing.T) {
	local := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	c := fleet.NewClock(func() time.Time { return local })
	if _, _, ok := c.Now(); ok {
		t.Error("it knows the time before it was told")
	}
	server := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.Heard(server)
	local = local.Add(time.Minute)
	if now, age, ok := c.Now(); !ok || age != time.Minute || !now.Equal(server.Add(time.Minute)) {
		t.Error(now, age, ok)
	}
}

// What may pass by itself is asked again, and nothing else.
func TestAway(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"no servers", fmt.Errorf("connect: %w", nats.ErrNoServers), true},
		{"no leader", &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}, true},
		{"not decided yet, for want of a majority", &jetstream.APIError{Code: 409, ErrorCode: 10158, Description: "duplicate message id is in process"}, true},
		{"a replica's server is not back", &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline"}, true},
		{"too few servers", &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement"}, false},
		{"too many replicas", &jetstream.APIError{Code: 500, ErrorCode: 10074, Description: "replicas > 1 not supported in non-clustered mode"}, false},
		{"another's settings", &jetstream.APIError{Code: 400, ErrorCode: 10058, Description: "stream name already in use"}, false},
		{"not allowed", nats.ErrPermissionViolation, false},
	} {
		if got := fleet.Away(c.err); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
