// Package jetstore keeps sessions in NATS JetStream, with the same promises as
// the stores in files and in memory.
//
// A session is a subject of one stream. A message holds the records of one
// Append, so that all of them are there or none. It is taken only if it follows
// the newest message of its subject, by the number that the server gave that one:
// numbering has no gaps, and of two writers one is refused.
//
// A claim is two things. A lease says who writes, and lapses when its holder no
// longer renews it. A message in the log itself says that the writer changed:
// whatever an earlier writer sends after it no longer follows and is refused, as
// late as it may come. The lease is for progress, the message for safety.
package jetstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Headers of a message. Each message says all that is to be known of its session,
// so that the newest one is enough.
const (
	hdrWriter     = "Coder-Writer"     // the token of the claim it was written under
	hdrLast       = "Coder-Last"       // the newest record, with this message
	hdrWrite      = "Coder-Write"      // tells this message from every other
	hdrCheckpoint = "Coder-Checkpoint" // where the files are that belong to it
)

// Layout names what is kept where, and how safely.
type Layout struct {
	Name     string        // begins the names of streams and subjects
	Replicas int           // of everything; zero is one
	Lease    time.Duration // after which a writer that is silent is gone
}

func (l Layout) subject(session string) string { return l.Name + ".log." + token(session) }
func (l Layout) logs() string                  { return l.Name + "-log" }
func (l Layout) leases() string                { return l.Name + "-lease" }
func (l Layout) sessions() string              { return l.Name + "-session" }

// token is a session's id as a part of a subject.
func token(session string) string { return strings.ReplaceAll(session, ".", "=") }

// Provision makes what the stores need, and leaves alone what is there.
func Provision(ctx context.Context, js jetstream.JetStream, l Layout) error {
	replicas := max(l.Replicas, 1)
	for _, c := range []jetstream.StreamConfig{
		{Name: l.logs(), Subjects: []string{l.Name + ".log.*"}, Replicas: replicas, DenyDelete: true},
		{Name: l.sessions(), Subjects: []string{l.Name + ".session.*"}, Replicas: replicas, MaxMsgsPerSubject: 1},
	} {
		if err := ensure(ctx, js, c); err != nil {
			return err
		}
	}
	return Bucket(ctx, js, jetstream.KeyValueConfig{Bucket: l.leases(), TTL: l.Lease, Replicas: replicas})
}

// Bucket makes a bucket in which no message can remove those of other keys.
func Bucket(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig) error {
	_, err := js.CreateKeyValue(ctx, c)
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return message.Errorf("create the bucket %s: %w", c.Bucket, err)
	}
	stream, err := js.Stream(ctx, "KV_"+c.Bucket)
	if err == nil && stream.CachedInfo().Config.AllowRollup {
		config := stream.CachedInfo().Config
		config.AllowRollup = false // else one message that says "all" is a purge
		_, err = js.UpdateStream(ctx, config)
	}
	if err != nil {
		return message.Errorf("create the bucket %s: %w", c.Bucket, err)
	}
	return nil
}

func ensure(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) error {
	if _, err := js.CreateStream(ctx, c); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return message.Errorf("create the stream %s: %w", c.Name, err)
	}
	return nil
}

// Remove removes the log and the snapshot of a session.
func Remove(ctx context.Context, js jetstream.JetStream, l Layout, session string) error {
	for name, subject := range map[string]string{l.logs(): l.subject(session),
		l.sessions(): l.Name + ".session." + token(session)} {
		stream, err := js.Stream(ctx, name)
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
		}
		if err != nil {
			return message.Errorf("remove session %s: %w", session, err)
		}
	}
	return nil
}

// Options say how a store behaves. The zero value is fine.
type Options struct {
	// Holder names this writer to whoever is refused a claim.
	Holder string
	// Token, if set, is that of a claim that another process of this worker holds
	// and renews: [Store.Claim] joins it rather than making one.
	Token string
	// Patience is how long an Append waits for a server that is away. Zero is
	// [DefaultPatience].
	Patience time.Duration
	// Attempt is how long one attempt to reach a server may take. Zero is [DefaultAttempt].
	Attempt time.Duration
	// Checkpoint, if set, is called before records are written and says where the
	// files are that belong to them; "" is where they were.
	Checkpoint func(ctx context.Context, rs []event.Record) (string, error)
	// NewToken makes the token of a claim; nil means one that nobody else has.
	NewToken func() string
}

// DefaultPatience is how long a server may be away before work is given up.
const DefaultPatience = 30 * time.Minute

// Store is an [event.Store]. Use [Open].
type Store struct {
	js     jetstream.JetStream
	l      Layout
	o      Options
	stream jetstream.Stream
	leases jetstream.KeyValue

	mu   sync.Mutex // guards held
	held map[string]*claim
}

// Open returns the store that [Provision] made.
func Open(ctx context.Context, js jetstream.JetStream, l Layout, o Options) (*Store, error) {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Attempt == 0 {
		o.Attempt = DefaultAttempt
	}
	if o.NewToken == nil {
		o.NewToken = nuid.Next
	}
	s := &Store{js: js, l: l, o: o, held: make(map[string]*claim)}
	var err error
	if s.stream, err = js.Stream(ctx, l.logs()); err != nil {
		return nil, message.Errorf("open the logs: %w", err)
	}
	if s.leases, err = js.KeyValue(ctx, l.leases()); err != nil {
		return nil, message.Errorf("open the leases: %w", err)
	}
	return s, nil
}

// Tip is the end of a session's log.
type Tip struct {
	Last       uint64 // the newest record
	Writer     string // the token of the claim in force
	Checkpoint string // where the files are that belong to it; "" if there are none
	seq        uint64 // of the newest message in the stream
	write      string // its own mark
}

// Tip returns the end of a session's log; that of a session never written is empty.
func (s *Store) Tip(ctx context.Context, session string) (Tip, error) {
	m, err := s.stream.GetLastMsgForSubject(ctx, s.l.subject(session))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Tip{}, nil
	}
	if err != nil {
		return Tip{}, message.Errorf("read the end of session %s: %w", session, err)
	}
	t := Tip{Writer: m.Header.Get(hdrWriter), Checkpoint: m.Header.Get(hdrCheckpoint), write: m.Header.Get(hdrWrite),
		seq: m.Sequence}
	if t.Last, err = strconv.ParseUint(m.Header.Get(hdrLast), 10, 64); err != nil {
		return Tip{}, message.Errorf("session %s: message %d was not written by coder", session, m.Sequence)
	}
	return t, nil
}

// claim is a session that this store may write.
type claim struct {
	session string
	token   string
	lease   *lease // nil where another process holds it

	mu  sync.Mutex // guards tip
	tip Tip
}

// Claim makes the caller the only writer of session, and every earlier one a
// writer whose records are refused.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[session] != nil {
		return nil, &event.ClaimedError{Session: session, Holder: "this process"}
	}
	c := &claim{session: session, token: s.o.Token}
	if c.token == "" {
		err = s.take(ctx, c)
	} else {
		err = s.join(ctx, c)
	}
	if err != nil {
		return nil, message.Errorf("claim session %s: %w", session, err)
	}
	s.held[session] = c
	return sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.held, session)
		s.mu.Unlock()
		return c.lease.release()
	}), nil
}

// join enters the claim that another process holds.
func (s *Store) join(ctx context.Context, c *claim) (err error) {
	waiting, stop := context.WithTimeout(ctx, s.o.Patience)
	defer stop()
	for c.tip, err = s.Tip(waiting, c.session); err != nil; c.tip, err = s.Tip(waiting, c.session) {
		select {
		case <-waiting.Done():
			return cause(err, ctx.Err())
		case <-time.After(250 * time.Millisecond):
		}
	}
	if c.tip.Writer != c.token {
		return event.ErrConflict
	}
	return nil
}

// take makes a claim: the lease first, then the word in the log.
func (s *Store) take(ctx context.Context, c *claim) (err error) {
	c.token = s.o.NewToken()
	if c.lease, err = s.newLease(ctx, c); err != nil {
		return err
	}
	for {
		if c.tip, err = s.Tip(ctx, c.session); err != nil {
			break
		}
		if err = s.write(ctx, c, c.tip.Last, c.tip.Checkpoint, nil); !errors.Is(err, event.ErrConflict) {
			break // it failed, or no earlier writer came in between
		}
		if err = ctx.Err(); err != nil {
			break
		}
	}
	if err != nil {
		return errors.Join(err, c.lease.release())
	}
	return nil
}

// Held is the token of the claim that this store holds on session, and a channel
// that is closed when another has it.
func (s *Store) Held(session string) (token string, lost <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[session]
	if c == nil {
		return "", nil
	}
	if c.lease == nil {
		return c.token, nil
	}
	return c.token, c.lease.lost
}

// Append adds rs, all of them or none.
func (s *Store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil || len(rs) == 0 {
		return err
	}
	s.mu.Lock()
	c := s.held[rs[0].Session]
	s.mu.Unlock()
	if c == nil {
		return event.ErrConflict
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last != c.tip.Last || !event.AreConsecutive(last, rs) {
		return event.ErrConflict
	}
	body, err := encode(rs)
	if err != nil {
		return err
	}
	checkpoint := c.tip.Checkpoint
	if s.o.Checkpoint != nil {
		made, err := s.o.Checkpoint(ctx, rs)
		if err != nil {
			return message.Errorf("save the files: %w", err)
		}
		if made != "" {
			checkpoint = made
		}
	}
	return s.write(ctx, c, last+uint64(len(rs)), checkpoint, body)
}

// encode writes records one a line, each after the number of its log.
func encode(rs []event.Record) ([]byte, error) {
	var b bytes.Buffer
	for _, r := range rs {
		line, err := event.Encode(r)
		if err != nil {
			return nil, err
		}
		b.WriteByte('0' + byte(event.LogOf(r.Event)))
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// write sends one message that follows the tip of c, and moves the tip. It waits
// for a server that is away. Whether a message arrived whose receipt got lost is
// seen in the log.
func (s *Store) write(ctx context.Context, c *claim, last uint64, checkpoint string, body []byte) error {
	next := Tip{Last: last, Writer: c.token, Checkpoint: checkpoint, write: nuid.Next()}
	ctx, stop := context.WithTimeout(ctx, s.o.Patience)
	defer stop()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		m := nats.NewMsg(s.l.subject(c.session))
		m.Data = body
		for name, value := range map[string]string{hdrWriter: next.Writer, hdrLast: strconv.FormatUint(last, 10),
			hdrWrite: next.write, hdrCheckpoint: checkpoint} {
			m.Header.Set(name, value)
		}
		ack, err := s.publish(ctx, m, c.tip.seq)
		switch {
		case err == nil:
			next.seq = ack.Sequence
			c.tip = next
			return nil
		case moved(err):
			tip, err := s.Tip(ctx, c.session)
			if err != nil {
				break // ask again
			}
			if tip.write != next.write {
				return event.ErrConflict
			}
			c.tip = tip
			return nil
		case errors.Is(err, nats.ErrMaxPayload):
			return message.Errorf("save records of %d bytes: %w", len(body), err)
		}
		select {
		case <-ctx.Done():
			return message.Errorf("save records of session %s: %w", c.session, cause(err, ctx.Err()))
		case <-time.After(pause):
		}
	}
}

// DefaultAttempt is how long one attempt to reach a server may take.
const DefaultAttempt = 5 * time.Second

func (s *Store) publish(ctx context.Context, m *nats.Msg, after uint64) (*jetstream.PubAck, error) {
	ctx, stop := context.WithTimeout(ctx, s.o.Attempt)
	defer stop()
	return s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after))
}

// moved reports whether a server refused a message because it does not follow.
func moved(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// cause prefers what went wrong to the end of the patience with it.
func cause(err, ended error) error {
	if err == nil || ended != nil && errors.Is(ended, context.Canceled) {
		return ended
	}
	return err
}

// lease is the right to claim a session, for as long as it is renewed.
type lease struct {
	s     *Store
	c     *claim
	value []byte
	lost  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
	rev   uint64
}

// note is what a lease says.
type note struct {
	Token  string `json:"token"`
	Holder string `json:"holder"`
}

func (s *Store) newLease(ctx context.Context, c *claim) (*lease, error) {
	value, err := json.Marshal(note{Token: c.token, Holder: s.o.Holder})
	if err != nil {
		return nil, err
	}
	l := &lease{s: s, c: c, value: value, lost: make(chan struct{}), done: make(chan struct{})}
	if err := l.create(ctx); err != nil {
		return nil, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.renew(renewing)
	return l, nil
}

// create takes the lease if nobody has it. One whose receipt got lost is known by
// its token.
func (l *lease) create(ctx context.Context) error {
	key := token(l.c.session)
	rev, err := l.s.leases.Create(ctx, key, l.value)
	if moved(err) || errors.Is(err, jetstream.ErrKeyExists) {
		e, getErr := l.s.leases.Get(ctx, key)
		var n note
		switch {
		case errors.Is(getErr, jetstream.ErrKeyNotFound):
			rev, err = l.s.leases.Create(ctx, key, l.value) // it lapsed just now
		case getErr != nil:
			return getErr
		case json.Unmarshal(e.Value(), &n) == nil && n.Token == l.c.token:
			rev, err = e.Revision(), nil
		default:
			if n.Holder == "" {
				n.Holder = "another worker"
			}
			return &event.ClaimedError{Session: l.c.session, Holder: n.Holder}
		}
	}
	if moved(err) || errors.Is(err, jetstream.ErrKeyExists) {
		return &event.ClaimedError{Session: l.c.session, Holder: "another worker"}
	}
	l.rev = rev
	return err
}

// renew keeps the lease until it is let go of, or known to be another's. A lease
// that lapsed while the server was away is taken again, unless another writer
// came meanwhile.
func (l *lease) renew(ctx context.Context) {
	defer close(l.done)
	every := time.NewTicker(max(l.s.l.Lease/4, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		// a server that comes back is to hear of it soon
		trying, stop := context.WithTimeout(ctx, max(l.s.l.Lease/4, 500*time.Millisecond))
		rev, err := l.s.leases.Update(trying, token(l.c.session), l.value, l.rev)
		switch {
		case err == nil:
			l.rev = rev
		case moved(err) || errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			if l.again(trying) {
				break
			}
			stop()
			close(l.lost)
			return
		}
		stop()
	}
}

// again takes a lease that is no longer as it was left, and reports false if
// another has it, or wrote since.
func (l *lease) again(ctx context.Context) bool {
	var claimed *event.ClaimedError
	if err := l.create(ctx); err != nil {
		return !errors.As(err, &claimed) // else it is tried again
	}
	tip, err := l.s.Tip(ctx, l.c.session)
	return err != nil || tip.Writer == l.c.token
}

func (l *lease) release() error {
	if l == nil {
		return nil
	}
	l.stop()
	<-l.done
	ctx, stop := context.WithTimeout(context.Background(), l.s.o.Attempt)
	defer stop()
	err := l.s.leases.Delete(ctx, token(l.c.session), jetstream.LastRevision(l.rev))
	if moved(err) || errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil // it is another's
	}
	return err
}
