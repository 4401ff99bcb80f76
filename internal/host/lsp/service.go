package lsp

import (
	"context"
	"errors"
	"slices"
	"time"

	"coder/internal/core/clock"
	"coder/internal/core/message"
)

// ensureServer returns the server for kind and root, and starts it if necessary. It waits until the server is
// ready or ctx ends; in that case the start continues.
func (p *Pool) ensureServer(ctx context.Context, kind Kind, command []string, root string) (*server, error) {
	for {
		sv, err := p.ensureService(kind, command, root)
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
		if sv.server.isAlive() {
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

// ensureService returns the service of a post, or begins one.
func (p *Pool) ensureService(kind Kind, command []string, root string) (*service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	at := serverID{kind.Name, root}
	h := p.histories[at]
	if h == nil {
		h = new(history)
		p.histories[at] = h
	}
	if h.current == nil {
		if h.deaths >= len(restartDelays) { // recent deaths
			select {
			case <-h.pauseOver:
				h.deaths = 0
			default:
				return nil, message.Errorf("%s exited %d times and will not restart for a while; last: %w", kind.Name,
					h.deaths,
					h.lastErr)
			}
		}
		var oldest *service
		n := 0
		for _, h := range p.histories {
			if h.current == nil {
				continue
			}
			if n++; oldest == nil || h.current.lastUse < oldest.lastUse {
				oldest = h.current
			}
		}
		if n >= maxServers {
			oldest.cancel()
		}
		life, cancel := context.WithCancel(p.ctx)
		sv := &service{ready: make(chan struct{}), used: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel}
		h.current = sv
		do := launchSpec{kind, command, root, restartDelays[h.deaths]}
		p.owners.Go(func() {
			defer cancel()
			defer close(sv.ended)
			died, proven := p.serve(life, sv, do)
			p.mu.Lock()
			h.current = nil
			if proven {
				h.deaths = 0
			}
			if died != nil { // counts against the next one
				h.lastErr = died
				if h.deaths++; h.deaths >= len(restartDelays) {
					h.pauseOver = time.After(crashPause)
				}
			}
			p.mu.Unlock()
			if sv.server == nil {
				close(sv.ready)
			}
		})
	}
	p.uses++
	h.current.lastUse = p.uses
	return h.current, nil
}

type launchSpec struct {
	kind    Kind
	command []string
	root    string
	delay   time.Duration
}

// serve runs a server until it dies or must stop. It returns why the server died, and whether it ran
// long enough to count as proven. If it never became ready, sv.err says why.
func (p *Pool) serve(life context.Context, sv *service, do launchSpec) (died error, proven bool) {
	s, err := p.startServer(life, do)
	switch {
	case err != nil && life.Err() != nil:
		sv.err = message.Errorf("%s: %w", do.kind.Name, errStopped)
		return nil, false
	case err != nil:
		sv.err = err
		return err, false
	}
	long := time.After(stableTime)
	sv.server = s
	close(sv.ready)
	idle := time.NewTimer(idleTimeout)
	defer idle.Stop()
	for used := true; used; {
		used = false
		select {
		case <-sv.used:
			used = true
			idle.Reset(idleTimeout)
		case <-idle.C:
			s.stop()
		case <-life.Done():
			s.stop()
		case <-s.conn.done:
			err = s.conn.endError()
		}
	}
	s.connGroup.Wait()
	select {
	case <-long:
		proven = true
	default:
	}
	return p.explainError(s, err), proven
}

func (p *Pool) startServer(life context.Context, do launchSpec) (*server, error) {
	if err := clock.Sleep(life, do.delay); err != nil {
		return nil, err
	}
	dir, env, err := p.options.launchEnv(do.root)
	if err != nil {
		return nil, message.Errorf("start %s: %w", do.kind.Name, err)
	}
	l, err := p.launch(do.command, dir, slices.Concat(env, do.kind.Env))
	if err != nil {
		return nil, err
	}
	s := newServer(do.kind, p.options.Root, do.root, l)
	s.connGroup.Go(s.conn.run)
	if err := s.initialize(life, p.options); err != nil {
		s.conn.closeWith(err)
		s.connGroup.Wait()
		return nil, p.explainError(s, err)
	}
	return s, nil
}

// errStopped reports that a server had to stop before it was ready.
var errStopped = errors.New("stopped before it was ready")
