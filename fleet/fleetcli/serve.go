package fleetcli

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"coder/fleet/engine"
	"coder/fleet/queue"
	"coder/fleet/worker"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// serving are the flags of up and worker.
type serving struct {
	server   engine.ServerOptions
	peers    string
	replicas int
	lease    time.Duration
	maxQueue int64
	slots    int
	name     string
	work     string
	minFree  int64
	metrics  string
	yolo     bool
}

func (c *call) workerFlags(f *flag.FlagSet) {
	f.IntVar(&c.serving.slots, "slots", max(runtime.NumCPU()/2, 1), "")
	f.StringVar(&c.serving.name, "name", "", "")
	f.Int64Var(&c.serving.minFree, "min-free-mb", 512, "")
	f.StringVar(&c.serving.metrics, "metrics", "", "")
	f.BoolVar(&c.serving.yolo, "allow-yolo", false, "")
}

// listen is where the server of a fleet is found unless said otherwise.
const listen = "127.0.0.1:7422"

func (c *call) upFlags(f *flag.FlagSet) {
	c.workerFlags(f)
	f.StringVar(&c.serving.work, "work", "", "")
	f.StringVar(&c.serving.server.Listen, "listen", listen, "")
	f.StringVar(&c.serving.server.Name, "node", "", "")
	f.StringVar(&c.serving.server.Cluster, "cluster", "", "")
	f.StringVar(&c.serving.peers, "peers", "", "")
	f.StringVar(&c.serving.server.Cert, "tls-cert", "", "")
	f.StringVar(&c.serving.server.Key, "tls-key", "", "")
	f.IntVar(&c.serving.replicas, "replicas", 1, "")
	f.DurationVar(&c.serving.lease, "lease", 10*time.Second, "")
	f.Int64Var(&c.serving.maxQueue, "max-queue", 100_000, "")
}

func (c *call) checkUp() error {
	if c.serving.lease < time.Second || c.serving.replicas < 1 || c.serving.replicas > 5 || c.serving.slots < 0 ||
		c.serving.maxQueue < 1 {
		return usagef("--lease must be at least 1s, --replicas 1 to 5, --slots and --max-queue not negative")
	}
	if s := c.serving; c.link.URL != "" && (s.server.Listen != listen || s.peers != "" || s.server.Name+s.server.Cluster+
		s.server.Cert+s.server.Key != "") {
		return usagef("--url names a running server: --listen, --node, --cluster, --peers and --tls-cert are for the built-in one")
	}
	return nil
}

// up starts a server, unless the fleet is to be on one that runs elsewhere, and a
// worker.
func (c *call) up(ctx context.Context) error {
	work := c.serving.work
	if work == "" {
		work = filepath.Join(cmp.Or(c.Getenv("XDG_CACHE_HOME"), filepath.Join(c.Getenv("HOME"), ".cache")), "coder-fleet")
	}
	var err error
	if c.serving.work, err = filepath.Abs(work); err != nil {
		return err
	}
	patience, own := time.Duration(0), c.link.URL == ""
	if own {
		server, err := c.startServer()
		if err != nil {
			return err
		}
		defer server.Stop()
		var attending sync.WaitGroup
		defer attending.Wait()
		attended, leave := context.WithCancel(context.WithoutCancel(ctx))
		defer leave()
		attending.Go(func() { server.Attend(attended, c.tell) })
		patience = time.Minute // the servers of a cluster find each other first
	} else if c.link, err = c.link.Or(c.dir); err != nil {
		return err
	}
	if c.link, err = c.link.Absolute(); err != nil {
		return err
	}
	key, err := c.sealKey()
	if err != nil {
		return err
	}
	if err := c.provision(ctx, patience, key); err != nil {
		return err
	}
	if most := c.conn.MaxPayload(); most < engine.MaxPayload {
		c.warn("the server limits messages to %d bytes, but a call may print more: set its max_payload to %d", most,
			engine.MaxPayload)
	}
	if err := c.link.Save(c.dir); err != nil {
		return message.Errorf("save the fleet's address: %w", err)
	}
	if err := c.enrollMe(ctx); err != nil {
		return err
	}
	stop, err := c.serveMetrics()
	if err != nil {
		return err
	}
	defer stop()
	c.say("the fleet is up at %s; its folder is %s", engine.Shown(c.link.URL), c.dir)
	if c.serving.slots > 0 {
		if err := c.work(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if own {
			c.say("the worker has stopped; the server runs until Ctrl-C")
		}
	}
	if own || c.serving.metrics != "" {
		<-ctx.Done()
	}
	return nil
}

// startServer starts a server of our own.
func (c *call) startServer() (*engine.Server, error) {
	if known, err := engine.Find(c.dir); err == nil && known.TokenFile != engine.TokenFile(c.dir, engine.Admin) {
		return nil, usagef("the fleet in %s is at %s: use --url to reach it, or --dir for another folder", c.dir,
			engine.Shown(known.URL))
	}
	o := c.serving.server
	o.Dir = c.dir
	if c.serving.peers != "" {
		o.Peers = strings.Split(c.serving.peers, ",")
	}
	server, err := engine.Start(o)
	if err != nil {
		return nil, err
	}
	if c.link = server.Link; o.Cert != "" && c.link.CA == "" {
		c.link.CA = o.Cert
	}
	return server, nil
}

// provision makes what the fleet needs, and tries for as long as patience lasts.
func (c *call) provision(ctx context.Context, patience time.Duration, key ed25519.PrivateKey) (err error) {
	deadline := time.Now().Add(patience)
	for {
		trying, stop := context.WithTimeout(ctx, 10*time.Second)
		if err = nil; c.conn == nil {
			c.conn, c.js, err = c.link.Dial("coder fleet")
		}
		if err == nil {
			s := queue.Settings{Lease: c.serving.lease, Replicas: c.serving.replicas, MaxQueue: c.serving.maxQueue,
				Work: c.serving.work}
			if err = queue.Provision(trying, c.js, s, key); err == nil {
				c.Queue, err = queue.Open(trying, c.js, c.Now, key)
			}
		}
		stop()
		if err == nil || errors.Is(err, queue.ErrOtherKey) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (c *call) checkWorker() error {
	if c.serving.slots < 1 {
		return usagef("a worker needs at least one slot")
	}
	return nil
}

// worker takes tasks of a fleet that is up.
func (c *call) worker(ctx context.Context) error {
	stop, err := c.serveMetrics()
	if err != nil {
		return err
	}
	defer stop()
	return c.work(ctx)
}

func (c *call) work(ctx context.Context) error {
	if !c.Seals() {
		return queue.ErrOtherKey
	}
	host, _ := os.Hostname()
	if i := strings.IndexByte(host, '.'); i > 0 {
		host = host[:i]
	}
	name := cmp.Or(c.serving.name, fmt.Sprintf("%s-%d", cmp.Or(host, "worker"), os.Getpid()))
	if !queue.ValidName(name) {
		return usagef("%q is not a valid worker name: use letters, digits, - and _", name)
	}
	w, err := worker.New(ctx, c.js, c.Queue, worker.Options{
		Name: name, Slots: c.serving.slots, Fleet: c.dir, Link: c.link, Exe: c.Exe, Environ: c.Environ, Yolo: c.serving.yolo,
		MinFree: uint64(max(c.serving.minFree, 0)) << 20,
		Say:     c.tell,
	})
	if err != nil {
		return err
	}
	c.say("worker %s takes tasks (%d at a time); Ctrl-C finishes them and exits, twice exits at once", name,
		c.serving.slots)
	again := ctx.Value(secondKey{}).(context.Context)
	return w.Serve(again, ctx)
}

// serveMetrics serves figures where the flags say so.
func (c *call) serveMetrics() (stop func(), err error) {
	if c.serving.metrics == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", c.serving.metrics)
	if err != nil {
		return nil, message.Errorf("serve metrics: %w", err)
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := c.figures(r.Context())
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte(text))
		})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() {
		_ = s.Close()
		<-done
	}, nil
}

// personKey is the key that this person's answers are signed with, made if there
// is none.
func (c *call) personKey() (ed25519.PrivateKey, error) {
	path := filepath.Join(c.dir, "person.key")
	text, err := repofile.ReadOwn(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails
		text = []byte(hex.EncodeToString(seed))
		if err = os.MkdirAll(c.dir, 0o700); err == nil {
			err = atomicfile.Write(path, append(text, '\n'), 0o600)
		}
	}
	if err != nil {
		return nil, message.Errorf("read your key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, message.Errorf("your key %s is damaged", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// public is the part of a key that others know it by.
func public(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}

// enrollMe lets the person who starts a fleet decide in it.
func (c *call) enrollMe(ctx context.Context) error {
	key, err := c.personKey()
	if err != nil {
		return err
	}
	return c.Enroll(ctx, c.me(), key.Public().(ed25519.PublicKey))
}

// enroll prints the person's own key, or makes somebody's known.
func (c *call) enroll(ctx context.Context) error {
	switch len(c.args) {
	case 0:
		key, err := c.personKey()
		if err != nil {
			return err
		}
		c.say("coder fleet enroll %s %s", c.me(), public(key))
		return nil
	case 2:
		key, err := base64.StdEncoding.DecodeString(c.args[1])
		if err != nil || len(key) != ed25519.PublicKeySize || !queue.ValidName(c.args[0]) {
			return usagef("coder fleet enroll needs a name and a public key, as printed by coder fleet enroll elsewhere")
		}
		if err := c.reach(ctx); err != nil {
			return err
		}
		if err := c.may(engine.Admin); err != nil {
			return err
		}
		if err := c.Enroll(ctx, c.args[0], key); err != nil {
			return err
		}
		c.say("%s can now answer", c.args[0])
		return nil
	}
	return usagef("coder fleet enroll needs a name and a public key, as printed by coder fleet enroll elsewhere")
}
