package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"coder/internal/core/message"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// Server is a server inside this program.
type Server struct {
	s       *server.Server
	options *server.Options
	keys    map[Role]string
	Link    Link // of an admin
}

func (s *Server) start() (err error) {
	opts, d := s.options.Clone(), &door{keys: s.keys, ready: make(chan struct{})}
	opts.CustomClientAuthentication = d
	if s.s, err = server.NewServer(opts); err != nil {
		return message.Errorf("start the server: %w", err)
	}
	go s.s.Start()
	if !s.s.ReadyForConnections(patience) {
		s.s.Shutdown()
		return message.Errorf(
			"the server could not listen on %s:%d; is a fleet already up there? see coder fleet status",
			s.options.Host, s.options.Port)
	}
	if err := d.open(s.s); err != nil {
		s.s.Shutdown()
		return message.Errorf("give each role its rights: %w", err)
	}
	return nil
}

// Stop ends the server.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

const (
	lookTime = 2 * time.Second // between two looks at the server
	restTime = time.Minute     // at most, between two times that it is started again
	room     = 16 << 20        // bytes that the disk must have for it to be worth it
)

// Attend looks after the server until ctx ends. One that could not write, as when
// the disk was full, writes no more until it is started again: that is done as soon
// as there is room.
func (s *Server) Attend(ctx context.Context, say func(string)) {
	said, rest := false, lookTime
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		err := s.stuck()
		if err == nil {
			said, rest = false, lookTime
			continue
		}
		if !said {
			said = true
			say(fmt.Sprintf("the server cannot write and accepts nothing until it can: %v", err))
		}
		if free, err := Free(s.options.StoreDir); err != nil || free < room {
			continue
		}
		s.Stop()
		if err := s.start(); err != nil {
			say(err.Error())
		} else if err := s.stuck(); err == nil {
			say("the server restarted and can write again")
		}
		rest = min(2*rest, restTime)
	}
}

// stuck is why the server takes nothing more, for good; nil if it does.
func (s *Server) stuck() error {
	h := s.s.Healthz(&server.HealthzOptions{})
	if !s.s.JetStreamEnabled() || strings.Contains(h.Error, "write error") {
		return errors.New(h.Error)
	}
	return nil
}

// Free is how many bytes are left on the disk of a folder.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
