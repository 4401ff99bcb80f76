package worker

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"iter"

	"coder/fleet/jetstore"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/authkey"
	"coder/internal/record/seal"
)

// tee is the store of a task: the log on this worker's disk, which is that of an
// ordinary session, and the log of the fleet. A record is in both before anything
// is done because of it. What is refused by the fleet ends the work.
//
// Seals are bound to a folder and a key of this machine; those in the log of the
// fleet are bound to the fleet's. Each record is sealed anew on its way, if the
// seal that it has holds.
type tee struct {
	event.Store // on this disk
	fleet       *jetstore.Store
	seals       func() translator
	failed      func(error) // told why a record is not in the log of the fleet
	out         translator
}

// translator gives a record that one notary vouches for the seal of another.
type translator struct{ from, to *seal.Sealer }

func (t translator) translate(r event.Record) event.Record {
	vouched := t.from.HasValidSeal(r)
	r.Seal = ""
	if vouched {
		t.to.Seal(&r)
	} else {
		t.to.HasValidSeal(r) // it has to see them all
	}
	return r
}

// sealing is how records are sealed here and in the fleet.
type sealing struct {
	here, fleet *authkey.Key
	root, id    string
}

func (s sealing) local() *seal.Sealer  { return seal.New(s.here, s.root, s.id) }
func (s sealing) shared() *seal.Sealer { return seal.New(s.fleet, "fleet", s.id) }

func (s sealing) outward() translator { return translator{s.local(), s.shared()} }
func (s sealing) inward() translator  { return translator{s.shared(), s.local()} }

// Claim claims the session in both.
func (t *tee) Claim(ctx context.Context, session string) (func() error, error) {
	release, err := t.Store.Claim(ctx, session)
	if err != nil {
		return nil, err
	}
	leave, err := t.fleet.Claim(ctx, session)
	if err != nil {
		_ = release()
		return nil, err
	}
	t.out = t.seals()
	for r, err := range t.Store.Read(ctx, session, 0) {
		if err != nil {
			_ = release()
			return nil, err
		}
		t.out.translate(r)
	}
	return func() error {
		_ = leave()
		return release()
	}, nil
}

// Append writes to this disk, then to the fleet.
func (t *tee) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := t.Store.Append(ctx, last, rs...); err != nil {
		return err
	}
	shared := make([]event.Record, len(rs))
	for i, r := range rs {
		shared[i] = t.out.translate(r)
	}
	err := t.fleet.Append(ctx, last, shared...)
	if err != nil {
		t.failed(err)
	}
	return err
}

// bring writes what the fleet knows of a session to this disk.
func bring(ctx context.Context, records iter.Seq2[event.Record, error], to event.Store, session string,
	in translator) (err error) {
	release, err := to.Claim(ctx, session)
	if err != nil {
		return err
	}
	defer func() {
		if end := release(); err == nil {
			err = end
		}
	}()
	var batch []event.Record
	last := uint64(0)
	flush := func() error {
		err := to.Append(ctx, last, batch...)
		last += uint64(len(batch))
		batch = batch[:0]
		return err
	}
	for r, err := range records {
		if err != nil {
			return message.Errorf("fetch the log: %w", err)
		}
		if batch = append(batch, in.translate(r)); len(batch) == 256 {
			if err := flush(); err != nil {
				return message.Errorf("fetch the log: %w", err)
			}
		}
	}
	return flush()
}

// SealKey is the key by which the fleet that has key seals the state of its tasks. Its
// public part is in the settings of the fleet, so that everybody can check a seal.
func SealKey(key *authkey.Key) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(key.Sign("fleet seal")))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Verify reports how many records of a log of the fleet there are, and whether
// each that lets something be done carries the fleet's seal.
func Verify(records iter.Seq2[event.Record, error], key *authkey.Key, id string) (n uint64, err error) {
	notary := sealing{fleet: key, id: id}.shared()
	for r, err := range records {
		if err != nil {
			return n, err
		}
		if n++; r.Seq != n {
			return n, message.Errorf("record %d is in the place of record %d", r.Seq, n)
		}
		probe := r
		probe.Seal = ""
		held := notary.HasValidSeal(r)
		if notary.Seal(&probe); probe.Seal != "" && !held {
			name, _ := event.WireName(r.Event)
			return n, message.Errorf("record %d (%s) lacks the seal of the fleet", r.Seq, name)
		}
	}
	return n, nil
}
