// Package engine is where a fleet keeps its work: a NATS server with JetStream,
// inside this program or elsewhere, and the way to reach it.
package engine

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Role is what somebody may do in a fleet.
type Role string

// The roles. An admin enrols people and makes what the fleet needs; a worker
// writes logs and state; a person writes requests: tasks, answers, cancellations.
const (
	Admin  Role = "admin"
	Worker Role = "worker"
	Person Role = "person"
)

// Link is how a fleet is reached. Secrets are named by the files that hold them.
type Link struct {
	URL       string `json:"url"`
	Role      Role   `json:"role,omitempty"`       // whom the token is of; "" if it names nobody
	TokenFile string `json:"token_file,omitempty"` // 0600
	Creds     string `json:"creds,omitempty"`      // NATS credentials
	CA        string `json:"ca,omitempty"`         // who signed the server's certificate
	Cert      string `json:"cert,omitempty"`       // this side's own, with Key
	Key       string `json:"key,omitempty"`
}

const (
	linkFile  = "fleet.json"
	maxSecret = 1 << 10
	maxLink   = 64 << 10
)

// MaxPayload is how many bytes a message may have: the records of one step.
const MaxPayload = 16 << 20

// ErrNoFleet reports that nothing says where a fleet is.
var ErrNoFleet = errors.New("no fleet found here; start one with: coder fleet up")

// Find reads how the fleet is reached whose folder is dir.
func Find(dir string) (l Link, err error) {
	text, err := repofile.ReadOwn(filepath.Join(dir, linkFile), maxLink)
	if errors.Is(err, fs.ErrNotExist) {
		return l, ErrNoFleet
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, message.Errorf("read the fleet's address: %w", err)
	}
	return l, nil
}

// Or fills in what l leaves open: how the fleet known in dir is reached, which is the
// one meant if l names no other, and the tokens kept there. Those go to no server
// that is not known unless a role is named.
func (l Link) Or(dir string) (Link, error) {
	known, err := Find(dir)
	if err != nil && (l.URL == "" || !errors.Is(err, ErrNoFleet)) {
		return l, err
	}
	same := l.URL == "" || known.URL != "" && slices.Contains(strings.Split(l.URL, ","), known.URL)
	switch open := l.TokenFile == "" && l.Creds == ""; {
	case open && l.Role != "":
		l.TokenFile = TokenFile(dir, l.Role)
	case open && same:
		l.TokenFile, l.Creds, l.Role = known.TokenFile, known.Creds, known.Role
	case l.TokenFile != "" && l.Role == "":
		l.Role = roleOf(l.TokenFile)
	}
	if same {
		l.URL, l.CA = cmp.Or(l.URL, known.URL), cmp.Or(l.CA, known.CA)
		if l.Cert == "" {
			l.Cert, l.Key = known.Cert, known.Key
		}
	}
	return l, nil
}

// Absolute names the files of l from wherever it is read.
func (l Link) Absolute() (Link, error) {
	for _, file := range []*string{&l.TokenFile, &l.Creds, &l.CA, &l.Cert, &l.Key} {
		if *file == "" {
			continue
		}
		var err error
		if *file, err = filepath.Abs(*file); err != nil {
			return l, err
		}
	}
	return l, nil
}

// Save keeps how a fleet is reached in its folder.
func (l Link) Save(dir string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = write(dir, linkFile, append(text, '\n'))
	}
	return err
}

func write(dir, name string, text []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, name), text, 0o600)
}

// patience is how long either side waits for the other where it has not said that
// it is gone: a machine may be busy, and who is taken for dead too early loses a call.
const patience = 30 * time.Second

// Dial connects. A connection that breaks is made again for as long as the
// program runs.
func (l Link) Dial(name string) (*nats.Conn, jetstream.JetStream, error) {
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(patience),
		nats.ReconnectBufSize(-1), // what cannot be sent now is not sent behind our back later
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // whoever asked is told
	}
	if l.TokenFile != "" {
		token, err := secret(l.TokenFile)
		if err != nil {
			return nil, nil, err
		}
		if l.Role != "" {
			options = append(options, nats.UserInfo(string(l.Role), token), nats.CustomInboxPrefix(inbox(l.Role)))
		} else {
			options = append(options, nats.Token(token))
		}
	}
	if l.Creds != "" {
		options = append(options, nats.UserCredentials(l.Creds))
	}
	if l.CA != "" {
		options = append(options, nats.RootCAs(l.CA))
	}
	if l.Cert != "" {
		options = append(options, nats.ClientCert(l.Cert, l.Key))
	}
	c, err := nats.Connect(l.URL, options...)
	if errors.Is(err, nats.ErrNoServers) {
		return nil, nil, message.Errorf("no answer from %s; is the fleet up?", Shown(l.URL))
	}
	if err != nil {
		return nil, nil, message.Errorf("reach the fleet at %s: %w", Shown(l.URL), err)
	}
	prefix := Local(l.Role, jetstream.DefaultAPIPrefix)
	js, err := jetstream.NewWithAPIPrefix(c, prefix, jetstream.WithDefaultTimeout(patience))
	return c, js, err
}

// Shown is an address without its secrets.
func Shown(address string) string {
	var all []string
	for one := range strings.SplitSeq(address, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil {
			one = u.Redacted()
		}
		all = append(all, one)
	}
	return strings.Join(all, ",")
}

func secret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", message.Errorf("read a token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", message.Errorf("the token %s must be a file that only you can read (mode 0600)", path)
	}
	text, err := repofile.ReadOwn(path, maxSecret)
	if err != nil {
		return "", message.Errorf("read a token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// TokenFile is where the token of a role is kept in the folder of a fleet.
func TokenFile(dir string, r Role) string { return filepath.Join(dir, string(r)+".token") }

// roleOf is whose token a file holds, by its name; "" if that says nothing.
func roleOf(file string) Role {
	name, _ := strings.CutSuffix(filepath.Base(file), ".token")
	if r := Role(name); r == Admin || r == Worker || r == Person {
		return r
	}
	return ""
}

const routes Role = "route" // the servers of a cluster, among themselves

// tokens reads the secrets of a fleet, and makes those that are missing.
func tokens(dir string) (map[Role]string, error) {
	all := make(map[Role]string)
	for _, r := range []Role{Admin, Worker, Person, routes} {
		path := TokenFile(dir, r)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			b := make([]byte, 24)
			_, _ = rand.Read(b) // never fails
			made := fmt.Sprintf("%s.%d", filepath.Base(path), os.Getpid())
			err := write(dir, made, []byte(hex.EncodeToString(b)+"\n"))
			if err == nil { // the first of several makers wins
				err = os.Link(filepath.Join(dir, made), path)
				_ = os.Remove(filepath.Join(dir, made))
			}
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, message.Errorf("create a token: %w", err)
			}
		}
		var err error
		if all[r], err = secret(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ServerOptions say how a server is started. The zero value, but for Dir, serves
// this machine alone.
type ServerOptions struct {
	Dir     string   // of the fleet: its tokens, and below it what the server keeps
	Name    string   // of this server; "" is node
	Listen  string   // where clients come; "" is a free port of this machine
	Cluster string   // where other servers of the fleet come; "" if there are none
	Peers   []string // where those are
	Cert    string   // of the server, with Key: needed beyond this machine
	Key     string
}

// Start starts a server. What is acknowledged is on the disk.
func Start(o ServerOptions) (*Server, error) {
	keys, err := tokens(o.Dir)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(o.Name, "node")
	opts := &server.Options{
		ServerName: name, NoSigs: true, NoLog: true, DisableJetStreamBanner: true, MaxPayload: MaxPayload,
		MaxPending: 256 << 20,
		JetStream:  true, StoreDir: filepath.Join(o.Dir, "data", name), SyncAlways: true, SyncInterval: time.Minute,
		AuthTimeout: patience.Seconds(),
	}
	if opts.Host, opts.Port, err = address(cmp.Or(o.Listen, "127.0.0.1:0")); err != nil {
		return nil, err
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if o.Cert != "" {
		tls, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.Cert, KeyFile: o.Key, Timeout: patience.Seconds()})
		if err != nil {
			return nil, message.Errorf("use the certificate: %w", err)
		}
		opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, tls, patience.Seconds()
	} else if !loopback(opts.Host) {
		return nil, message.Errorf("to listen on %s, beyond this machine, set --tls-cert and --tls-key", o.Listen)
	}
	if o.Cluster != "" {
		if err := cluster(opts, o, keys[routes]); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(opts.StoreDir, 0o700); err != nil {
		return nil, message.Errorf("create the server's folder: %w", err)
	}
	s := &Server{options: opts, keys: keys}
	if err := s.start(); err != nil {
		return nil, err
	}
	opts.Port = s.s.Addr().(*net.TCPAddr).Port
	scheme := "nats"
	if opts.TLS {
		scheme = "tls"
	}
	s.Link = Link{URL: scheme + "://" + net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port)), Role: Admin,
		TokenFile: TokenFile(o.Dir, Admin)}
	return s, nil
}

func cluster(opts *server.Options, o ServerOptions, token string) (err error) {
	opts.Cluster = server.ClusterOpts{Name: "coder", Username: string(routes), Password: token,
		AuthTimeout: patience.Seconds()}
	if opts.Cluster.Host, opts.Cluster.Port, err = address(o.Cluster); err != nil {
		return err
	}
	if !loopback(opts.Cluster.Host) {
		if o.Cert == "" {
			return message.Errorf("to listen on %s, beyond this machine, set --tls-cert and --tls-key", o.Cluster)
		}
		opts.Cluster.TLSConfig, opts.Cluster.TLSTimeout = opts.TLSConfig.Clone(), patience.Seconds()
	}
	for _, p := range o.Peers {
		if _, _, err := address(p); err != nil {
			return err
		}
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(string(routes), token),
			Host: p})
	}
	return nil
}

// address takes HOST:PORT apart.
func address(s string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || host == "" || port < 0 || port > 65535 {
		return "", 0, message.Errorf("%q is not an address such as 127.0.0.1:4222", s)
	}
	return host, port, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
