package fleetcli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/fleet/queue"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// authority signs certificates, which it keeps in dir.
type authority struct {
	t   *testing.T
	dir string
	crt *x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca")
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: a.crt == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if a.crt == nil {
		a.crt, a.key = template, made
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.crt, &made.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(made)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = a.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), a.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
	return cert, key
}

func (a *authority) write(name string, text []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// outside is a server that is none of ours, with TLS and certificates on both sides.
func (a *authority) outside(change func(*server.Options)) (url string) {
	a.t.Helper()
	cert, key := a.issue("server")
	tls, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: filepath.Join(a.dir, "ca.pem"), Verify: true, Timeout: 5})
	if err != nil {
		a.t.Fatal(err)
	}
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: a.t.TempDir(), TLS: true, TLSVerify: true, TLSConfig: tls, TLSTimeout: patience.Seconds(), AuthTimeout: patience.Seconds()}
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		a.t.Fatal(err)
	}
	go s.Start()
	a.t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		a.t.Fatal("the server does not listen")
	}
	return "tls://" + s.Addr().String()
}

// A fleet is begun on a server that others run, by TLS with certificates on both
// sides, with a token or with credentials; a task goes all its way there. Who lacks
// one of these is told so.
func TestAFleetOnAServerOfOthers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue("client")
	ca := filepath.Join(a.dir, "ca.pem")
	token := a.write("secret", []byte("s3cret\n"))
	type kind struct {
		change func(*server.Options)
		way    []string
	}
	accounts, creds := a.credentials()
	for name, c := range map[string]kind{
		"token":       {func(o *server.Options) { o.Authorization = "s3cret" }, []string{"--token-file", token}},
		"credentials": {accounts, []string{"--creds", creds}},
	} {
		t.Run(name, func(t *testing.T) {
			f := bare(t)
			url := a.outside(c.change)
			reach := append([]string{"--url", url, "--ca", ca, "--cert", cert, "--key", key}, c.way...)
			for says, args := range map[string][]string{
				"unknown authority":        {"ps", "--url", url},
				"reach the fleet at":       append([]string{"ps", "--url", url, "--ca", ca}, c.way...),
				"Authorization Violation":  {"ps", "--url", url, "--ca", ca, "--cert", cert, "--key", key},
				"holds no fleet yet":       append([]string{"ps"}, reach...),
				"server that runs already": append([]string{"up", "--node", "x"}, reach...),
			} {
				if out, code := f.run(args...); code == 0 || !strings.Contains(out, says) {
					t.Errorf("%v: exit code %d, want %q: %s", args, code, says, out)
				}
			}
			f.start(append([]string{"up", "--slots", "1", "--lease", "1s"}, reach...)...)
			id := f.must("submit", "begin the work", "--repo", f.repo, "--mode", "auto-edit", "--script", f.script("want begin the work\ncall write {\"path\":\"b.txt\",\"content\":\"two\\n\"}\nrepeat\nelse\nsay done\n"))
			if task := f.until(id, queue.Done); task.Result.Branch == "" {
				t.Errorf("the result is %+v", task.Result)
			}
			if got := f.must("verify"); !strings.Contains(got, "logs checked: 1, incomplete: 0") {
				t.Error(got)
			}
			if out, code := f.run("up", "--slots", "0"); code != 2 || !strings.Contains(out, "name it with --url") {
				t.Errorf("a server of our own in the same folder: exit code %d: %s", code, out)
			}
		})
	}
}

// credentials are those of a user of an account of an operator.
func (a *authority) credentials() (change func(*server.Options), file string) {
	a.t.Helper()
	made := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := create()
		if err != nil {
			a.t.Fatal(err)
		}
		public, err := k.PublicKey()
		if err != nil {
			a.t.Fatal(err)
		}
		return k, public
	}
	operator, operatorID := made(nkeys.CreateOperator)
	account, accountID := made(nkeys.CreateAccount)
	user, userID := made(nkeys.CreateUser)
	claims := jwt.NewAccountClaims(accountID)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	accountText, err := claims.Encode(operator)
	if err != nil {
		a.t.Fatal(err)
	}
	_, systemID := made(nkeys.CreateAccount)
	systemText, err := jwt.NewAccountClaims(systemID).Encode(operator)
	if err != nil {
		a.t.Fatal(err)
	}
	userText, err := jwt.NewUserClaims(userID).Encode(account)
	if err != nil {
		a.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		a.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(userText, seed)
	if err != nil {
		a.t.Fatal(err)
	}
	return func(o *server.Options) {
		o.TrustedKeys, o.AccountResolver = []string{operatorID}, &server.MemAccResolver{}
		o.SystemAccount = systemID
		for id, text := range map[string]string{accountID: accountText, systemID: systemText} {
			if err := o.AccountResolver.Store(id, text); err != nil {
				a.t.Fatal(err)
			}
		}
	}, a.write("user.creds", text)
}

// What is said on the command line about how the fleet is reached counts, also
// where the folder of the fleet says something else.
func TestATokenOnTheCommandLineCounts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dir := filepath.Join(f.home, ".coder", "fleet")
	wrong := filepath.Join(f.home, "wrong")
	if err := os.WriteFile(wrong, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"ps"}, 0, "no tasks"},
		{[]string{"ps", "--token-file", wrong}, 1, "Authorization Violation"},
		{[]string{"ps", "--token-file", filepath.Join(dir, "none")}, 1, "read a token"},
		{[]string{"ps", "--creds", filepath.Join(dir, "none")}, 1, "reach the fleet"},
		{[]string{"ps", "--token-file", filepath.Join(dir, "person.token")}, 0, "no tasks"},
		{[]string{"ps", "--as", "person"}, 0, "no tasks"},
	} {
		if out, code := f.run(c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d, want %d and %q: %s", c.args, code, c.code, c.says, out)
		}
	}
}
