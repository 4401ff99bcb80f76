package lsp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"coder/internal/core/clock"
)

// server returns the server for kind and root, and starts it if necessary. It waits until the server is
// ready or ctx ends; in that case the start continues.
func (p *Pool) server(ctx context.Context, kind Kind, command []string, root string) (*server, error) {
	for {
		sv, err := p.service(kind, command, root)
		if err != nil {
			return nil, err
		}
		select {
		case <-sv.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if sv.err != nil {
			return nil, sv.err
		}
		if sv.server.alive() {
			select {
			case sv.used <- struct{}{}:
			default:
			}
			return sv.server, nil
		}
		select { // until the cause of its death is recorded
		case <-sv.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// service returns the service of a post, or begins one.
func (p *Pool) service(kind Kind, command []string, root string) (*service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, ErrClosed
	}
	at := post{kind.Name, root}
	h := p.posts[at]
	if h == nil {
		h = new(history)
		p.posts[at] = h
	}
	if h.now == nil {
		if h.deaths >= len(delays) { // recent deaths
			select {
			case <-h.rested:
				h.deaths = 0
			default:
				return nil, fmt.Errorf("%s exited %d times and will not restart for a while; last: %w", kind.Name, h.deaths, h.last)
			}
		}
		var oldest *service
		n := 0
		for _, h := range p.posts {
			if h.now == nil {
				continue
			}
			if n++; oldest == nil || h.now.when < oldest.when {
				oldest = h.now
			}
		}
		if n >= maxServers {
			oldest.cancel()
		}
		life, cancel := context.WithCancel(p.life)
		sv := &service{ready: make(chan struct{}), used: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel}
		h.now = sv
		do := duty{kind, command, root, delays[h.deaths]}
		p.work.Go(func() {
			defer cancel()
			defer close(sv.ended)
			died, proven := p.serve(life, sv, do)
			p.mu.Lock()
			h.now = nil
			if proven {
				h.deaths = 0
			}
			if died != nil { // counts against the next one
				h.last = died
				if h.deaths++; h.deaths >= len(delays) {
					h.rested = time.After(restTime)
				}
			}
			p.mu.Unlock()
			if sv.server == nil {
				close(sv.ready)
			}
		})
	}
	p.uses++
	h.now.when = p.uses
	return h.now, nil
}

type duty struct {
	kind    Kind
	command []string
	root    string
	delay   time.Duration
}

// serve runs a server until it dies or must stop. It returns why the server died, and whether it ran
// long enough to count as proven. If it never became ready, sv.err says why.
func (p *Pool) serve(life context.Context, sv *service, do duty) (died error, proven bool) {
	s, err := p.begin(life, do)
	switch {
	case err != nil && life.Err() != nil:
		sv.err = fmt.Errorf("%s: %w", do.kind.Name, errLeft)
		return nil, false
	case err != nil:
		sv.err = err
		return err, false
	}
	long := time.After(provenTime)
	sv.server = s
	close(sv.ready)
	idle := time.NewTimer(idleLimit)
	defer idle.Stop()
	for used := true; used; {
		used = false
		select {
		case <-sv.used:
			used = true
			idle.Reset(idleLimit)
		case <-idle.C:
			s.stop()
		case <-life.Done():
			s.stop()
		case <-s.conn.done:
			err = s.conn.gone()
		}
	}
	s.talk.Wait()
	select {
	case <-long:
		proven = true
	default:
	}
	return p.explain(s, err), proven
}

func (p *Pool) begin(life context.Context, do duty) (*server, error) {
	if err := clock.Sleep(life, do.delay); err != nil {
		return nil, err
	}
	dir, env, err := p.options.surroundings(do.root)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", do.kind.Name, err)
	}
	l, err := p.launch(do.command, dir, slices.Concat(env, do.kind.Env))
	if err != nil {
		return nil, err
	}
	s := newServer(do.kind, p.options.Root, do.root, l)
	s.talk.Go(s.conn.run)
	if err := s.introduce(life, p.options); err != nil {
		s.conn.end(err)
		s.talk.Wait()
		return nil, p.explain(s, err)
	}
	return s, nil
}

// errLeft reports that a server had to stop before it was ready.
var errLeft = errors.New("stopped before it was ready")
